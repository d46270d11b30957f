#include "nodes.hpp"

#include <chrono>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>

#include <thrift/protocol/TCompactProtocol.h>
#include <thrift/transport/TBufferTransports.h>
#include <thrift/transport/TSocket.h>

using apache::thrift::protocol::TCompactProtocol;
using apache::thrift::protocol::TProtocolException;
using apache::thrift::transport::TFramedTransport;
using apache::thrift::transport::TSocket;
using apache::thrift::transport::TTransportException;

Nodes::Nodes(std::vector<std::string> nodes, int timeout_ms, int attempts,
             std::function<void(Client&)> on_connect)
    : nodes_(std::move(nodes)), timeout_ms_(timeout_ms), attempts_(attempts),
      on_connect_(std::move(on_connect)) {
    if (nodes_.empty() || attempts_ < 1) {
        throw std::invalid_argument("no nodes, or no attempts");
    }
}

void Nodes::close() {
    client_.reset(); // The socket closes itself.
}

void Nodes::go_on() {
    close();
    at_ = (at_ + 1) % nodes_.size();
}

void Nodes::after_failure() {
    bool helps = false;
    try {
        throw;
    } catch (const idgen::IdGenException& error) {
        if (!error.retriable) {
            throw;
        }
        helps = true;
    } catch (const TTransportException&) {
        helps = true;
    } catch (const TProtocolException&) {
        helps = true;
    } catch (...) {
        // Perhaps half of a reply was read: nothing may read on behind it.
        close();
    }
    if (helps) {
        go_on();
    }
    if (!helps || tried_ == attempts_) {
        throw;
    }
    if (tried_ % nodes_.size() == 0) {
        // Every node had its turn. At random, so that clients do not come in step.
        thread_local std::minstd_rand random{std::random_device{}()};
        std::uniform_int_distribution<> pause_ms(50, 150);
        std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms(random)));
    }
}

Nodes::Client& Nodes::connected() {
    if (!client_) {
        const std::string& node = nodes_[at_];
        const std::size_t colon = node.rfind(':');
        if (colon == std::string::npos) {
            throw std::invalid_argument("not HOST:PORT: " + node);
        }
        auto socket = std::make_shared<TSocket>(node.substr(0, colon), std::stoi(node.substr(colon + 1)));
        socket->setConnTimeout(timeout_ms_);
        socket->setRecvTimeout(timeout_ms_);
        socket->setSendTimeout(timeout_ms_);
        auto transport = std::make_shared<TFramedTransport>(socket);
        transport->open();
        auto client = std::make_unique<Client>(std::make_shared<TCompactProtocol>(transport));
        if (on_connect_) {
            on_connect_(*client);
        }
        client_ = std::move(client);
    }
    return *client_;
}
