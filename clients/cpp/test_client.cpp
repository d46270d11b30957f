// Tests generated code and library over every pair of transport and protocol, and Nodes.
//
// Needs CLIENTS_NODE, a node with the types of scripts/test-clients.sh.

#include <cstdlib>
#include <functional>
#include <iostream>
#include <sstream>
#include <stdexcept>

#include <thrift/TOutput.h>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/protocol/TCompactProtocol.h>
#include <thrift/transport/TBufferTransports.h>
#include <thrift/transport/TServerSocket.h>
#include <thrift/transport/TSocket.h>

#include "nodes.hpp"

using namespace apache::thrift::protocol;
using namespace apache::thrift::transport;
using Client = idgen::IdGenServiceClient;

namespace {

const std::string nobody = "127.0.0.1:1";
int64_t last_id = 0;

void check(bool holds, const std::string& what) {
    if (!holds) {
        throw std::logic_error(what);
    }
}

template <typename Wanted, typename Got> void equal(const Wanted& wanted, const Got& got) {
    std::ostringstream said;
    said << "wanted " << wanted << ", got " << got;
    check(wanted == got, said.str());
}

void ascends(int64_t id) {
    check(id > last_id, std::to_string(id) + " after " + std::to_string(last_id));
    last_id = id;
}

/** The number behind a prefix. */
int64_t number(const std::string& prefix, const std::string& text) {
    equal(prefix, text.substr(0, prefix.size()));
    std::size_t read = 0;
    const std::string digits = text.substr(prefix.size());
    const int64_t found = std::stoll(digits, &read);
    equal(digits.size(), read);
    return found;
}

/** Ids ascend, by every method and over all pairs. */
void ids(Client& client) {
    for (int at = 0; at < 200; at++) {
        ascends(client.nextId("order"));
    }
    std::vector<idgen::IdRange> ranges;
    client.nextIds(ranges, "order", 1000);
    int64_t count = 0;
    for (const auto& range : ranges) {
        ascends(range.first);
        last_id += range.count - 1;
        count += range.count;
    }
    equal(1000, count);
    idgen::ResLong answer;
    client.getId(answer, "cpp", "order");
    equal(200, answer.res);
    ascends(answer.value);
    idgen::ResStr text;
    client.getStrId(text, "cpp", "order", true);
    equal(200, text.res);
    ascends(number("OD", text.value));
    std::string plain;
    client.nextStringId(plain, "order", true);
    ascends(number("OD", plain));
}

/** Numbers above 2^53 and near 2^63 are exact: text and number follow each other. */
void large(Client& client) {
    for (const std::string type : {"big", "huge"}) {
        std::string text;
        client.nextStringId(text, type, false);
        const int64_t id = client.nextId(type);
        check(id > int64_t{1} << 53, "not a large id: " + std::to_string(id));
        equal(number("", text) + 1, id);
        std::vector<idgen::IdRange> ranges;
        client.nextIds(ranges, type, 2);
        equal(id + 1, ranges.at(0).first);
        idgen::DecodedId decoded;
        client.decodeId(decoded, type, text);
        equal(number("", text), decoded.id);
    }
}

/** UTF-8 both ways: a std::string holds its bytes. */
void texts(Client& client) {
    std::string text;
    client.nextStringId(text, "umlaut", true);
    number("Größe-№-", text);
    idgen::TypeInfo type;
    client.describeType(type, "umlaut");
    equal("Größe-№-", type.prefix);
    idgen::ResStr answer;
    client.echo(answer, "cpp", "grüß dich, 世界 😀");
    equal("grüß dich, 世界 😀", answer.value);
}

void refused(const std::function<void()>& call, const std::string& code, bool retriable,
             const std::string& field) {
    try {
        call();
    } catch (const idgen::IdGenException& error) {
        equal(code, error.code);
        equal(retriable, error.retriable);
        equal(!field.empty(), error.__isset.field);
        equal(field, error.field);
        return;
    }
    throw std::logic_error(code + " was not raised");
}

/** Failures, typed or in `res`. */
void refusals(Client& client) {
    std::vector<idgen::IdRange> ranges;
    refused([&] { client.nextId("no-such-type"); }, "UNKNOWN_TYPE", false, "");
    refused([&] { client.nextIds(ranges, "order", 0); }, "INVALID_ARGUMENT", false, "count");
    refused([&] { client.nextId("down"); }, "UNAVAILABLE", true, "");
    idgen::ResLong answer;
    client.getId(answer, "cpp", "no-such-type");
    equal(553, answer.res);
    equal(-1, answer.value);
    equal("UNKNOWN_TYPE: ", answer.ext.substr(0, 14));
}

template <typename Transport, typename Protocol>
void pair(const std::string& node, const std::string& name) {
    const std::size_t colon = node.rfind(':');
    auto socket = std::make_shared<TSocket>(node.substr(0, colon), std::stoi(node.substr(colon + 1)));
    socket->setRecvTimeout(10000);
    auto transport = std::make_shared<Transport>(socket);
    transport->open();
    Client client(std::make_shared<Protocol>(transport));
    ids(client);
    large(client);
    texts(client);
    refusals(client);
    std::cout << name << ": ok" << std::endl;
}

/** Goes on to the next node, or gives up, as Nodes says. */
void fail_over(const std::string& node) {
    const auto next = [](Client& client) { return client.nextId("order"); };

    TServerSocket silent("127.0.0.1", 0);
    silent.listen();
    const std::string address = "127.0.0.1:" + std::to_string(silent.getPort());
    int connected = 0;
    Nodes some({nobody, address, node}, 200, 4, [&](Client& client) {
        idgen::ResStr answer;
        client.echo(answer, "cpp", "hello");
        equal("hello", answer.value);
        connected++;
    });
    ascends(some.call(next));
    equal(3, some.tried());
    ascends(some.call(next));
    equal(1, some.tried());

    const auto unknown = [](Client& client) { return client.nextId("no-such-type"); };
    refused([&] { some.call(unknown); }, "UNKNOWN_TYPE", false, "");
    equal(1, some.tried());
    ascends(some.call(next));
    equal(1, connected);

    Nodes two({node, nobody}, 2000, 3);
    const auto down = [](Client& client) { return client.nextId("down"); };
    refused([&] { two.call(down); }, "UNAVAILABLE", true, "");
    equal(3, two.tried());

    Nodes none({nobody}, 2000, 2);
    try {
        none.call(next);
        throw std::logic_error("nobody answered, and a call returned");
    } catch (const TTransportException&) {
        equal(2, none.tried());
    }
    std::cout << "fail-over: ok" << std::endl;
}

} // namespace

int main() {
    apache::thrift::GlobalOutput.setOutputFunction([](const char*) {});
    const char* node = std::getenv("CLIENTS_NODE");
    try {
        check(node != nullptr, "CLIENTS_NODE is not set");
        pair<TFramedTransport, TBinaryProtocol>(node, "framed binary");
        pair<TFramedTransport, TCompactProtocol>(node, "framed compact");
        pair<TBufferedTransport, TBinaryProtocol>(node, "buffered binary");
        pair<TBufferedTransport, TCompactProtocol>(node, "buffered compact");
        fail_over(node);
    } catch (const std::exception& error) {
        std::cerr << "failed: " << error.what() << '\n';
        return 1;
    }
}
