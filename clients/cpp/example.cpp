// A client of IdGen: example HOST:PORT[,HOST:PORT…] [TYPE]

#include <iostream>
#include <sstream>

#include <thrift/TOutput.h>

#include "nodes.hpp"

/** Takes ids in every way that most programs need. */
int main(int argc, char** argv) {
    if (argc < 2) {
        std::cerr << "usage: example HOST:PORT[,HOST:PORT...] [TYPE]\n";
        return 2;
    }
    // What a connection says about its failures is in the exceptions as well.
    apache::thrift::GlobalOutput.setOutputFunction([](const char*) {});

    std::vector<std::string> list;
    std::istringstream parts(argv[1]);
    for (std::string node; std::getline(parts, node, ',');) {
        list.push_back(node);
    }
    const std::string type = argc > 2 ? argv[2] : "order";

    Nodes nodes(list);
    try {
        const int64_t id = nodes.call([&](Nodes::Client& client) { return client.nextId(type); });
        std::cout << "id: " << id << '\n';

        // The generated methods give structs, lists and texts through their first argument.
        const auto ranges = nodes.call([&](Nodes::Client& client) {
            std::vector<idgen::IdRange> found;
            client.nextIds(found, type, 100);
            return found;
        });
        const idgen::IdRange& last = ranges.back();
        std::cout << "ids: " << ranges.front().first << " to " << last.first + last.count - 1 << '\n';

        const auto text = nodes.call([&](Nodes::Client& client) {
            std::string found;
            client.nextStringId(found, type, true);
            return found;
        });
        std::cout << "text: " << text << '\n';
    } catch (const idgen::IdGenException& error) {
        std::cerr << "failed after " << nodes.tried() << " attempts: " << error.code << ": "
                  << error.message << '\n';
        return 1;
    } catch (const apache::thrift::TException& error) {
        std::cerr << "failed after " << nodes.tried() << " attempts: " << error.what() << '\n';
        return 1;
    }

    try {
        nodes.call([](Nodes::Client& client) { return client.nextId("no-such-type"); });
    } catch (const idgen::IdGenException& error) {
        std::cout << "refused: " << error.code << '\n';
    }
}
