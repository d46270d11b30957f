// Calls to IdGen that go on to the next node where one does not answer.
//
// Copy this file and nodes.cpp into your project, beside the code that the Thrift
// compiler makes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "IdGenService.h"

/**
 * One connection, to the first of the nodes that works. For one thread at a time, as
 * every Thrift client: give each thread its own.
 */
class Nodes {
public:
    using Client = idgen::IdGenServiceClient;

    /**
     * `nodes` are texts as "10.0.0.1:5900". `timeout_ms` is how long connecting, and each
     * answer, may take, in milliseconds. `on_connect` is called after each connecting;
     * authenticate there, if your cluster wants a token.
     */
    explicit Nodes(std::vector<std::string> nodes, int timeout_ms = 2000, int attempts = 4,
                   std::function<void(Client&)> on_connect = {});

    /**
     * What `method` gives, which is called with a connected client.
     *
     * Tries again, on the next node, where a retry may help: after an IdGenException that
     * says so, and where the node cannot be reached or does not answer. A repeated call
     * may use up more ids; it never brings one twice.
     */
    template <typename Method> auto call(Method method) {
        for (tried_ = 1;; tried_++) {
            try {
                return method(connected());
            } catch (...) {
                // Throws on what a retry does not help, and after the last attempt.
                after_failure();
            }
        }
    }

    /** How many attempts the last call took. */
    int tried() const { return tried_; }

    /** Closes the connection. The next call makes a new one. */
    void close();

private:
    Client& connected();
    void after_failure();
    void go_on();

    std::vector<std::string> nodes_;
    int timeout_ms_;
    int attempts_;
    std::function<void(Client&)> on_connect_;
    std::size_t at_ = 0;
    int tried_ = 0;
    std::unique_ptr<Client> client_;
};
