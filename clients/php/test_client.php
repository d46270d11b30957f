<?php

/**
 * Tests generated code and library over every pair of transport and protocol.
 *
 * Needs CLIENTS_NODE, a node with the types of scripts/test-clients.sh. Exits with
 * 255 and says what is wrong at the first answer that is not as expected.
 */

declare(strict_types=1);

use IdGen\IdGenException;
use IdGen\IdGenServiceClient;
use Thrift\Protocol\TBinaryProtocol;
use Thrift\Protocol\TBinaryProtocolAccelerated;
use Thrift\Protocol\TCompactProtocol;
use Thrift\Transport\TBufferedTransport;
use Thrift\Transport\TFramedTransport;
use Thrift\Transport\TSocket;

require __DIR__ . '/autoload.php';
require __DIR__ . '/Nodes.php';

// A warning of the generated code or of the library is a failure, too.
set_error_handler(function (int $level, string $message, string $file, int $line): bool {
    if ((error_reporting() & $level) === 0) {
        return false;
    }
    throw new \ErrorException($message, 0, $level, $file, $line);
});

/** Fails with both values unless they are the same, in type and value. */
function same(mixed $wanted, mixed $is): void
{
    if ($wanted !== $is) {
        throw new \AssertionError(var_export($is, true) . ' is not ' . var_export($wanted, true));
    }
}

/** Fails unless $is is an int above $least. */
function above(int $least, mixed $is): void
{
    if (!is_int($is) || $is <= $least) {
        throw new \AssertionError(var_export($is, true) . " is not an int above $least");
    }
}

/** Fails unless $is matches $pattern. */
function like(string $pattern, mixed $is): void
{
    if (!is_string($is) || preg_match($pattern, $is) !== 1) {
        throw new \AssertionError(var_export($is, true) . " is not like $pattern");
    }
}

/** Fails unless $call throws an IdGenException with these fields. */
function refused(\Closure $call, string $code, bool $retriable, ?string $field): void
{
    try {
        $answer = $call();
    } catch (IdGenException $error) {
        same([$code, $retriable, $field], [$error->code, $error->retriable, $error->field]);
        return;
    }
    throw new \AssertionError("$code was not thrown, but got " . var_export($answer, true));
}

/** Ids ascend, by every method. Gives the last one. */
function ids(IdGenServiceClient $client, int $last): int
{
    for ($at = 0; $at < 200; $at++) {
        $number = $client->nextId('order');
        above($last, $number);
        $last = $number;
    }
    $count = 0;
    foreach ($client->nextIds('order', 1000) as $part) {
        above($last, $part->first);
        $count += $part->count;
        $last = $part->first + $part->count - 1;
    }
    same(1000, $count);
    $answer = $client->getId('php', 'order');
    same(200, $answer->res);
    above($last, $answer->value);
    $answer = $client->getStrId('php', 'order', true);
    same(200, $answer->res);
    like('/^OD[0-9]+$/D', $answer->value);
    $text = $client->nextStringId('order', true);
    above((int) substr($answer->value, 2), (int) substr($text, 2));
    return (int) substr($text, 2);
}

/** Numbers above 2^53 and near 2^63 are exact: text and number follow each other. */
function large(IdGenServiceClient $client): void
{
    foreach (['big' => 9007199254740992, 'huge' => 9223372036853999999] as $type => $least) {
        $text = $client->nextStringId($type, false);
        same($text, (string) (int) $text);
        $number = $client->nextId($type);
        above($least, $number);
        same((int) $text + 1, $number);
        same($number + 1, $client->nextIds($type, 2)[0]->first);
        same((int) $text, $client->decodeId($type, $text)->id);
    }
}

/** UTF-8 both ways: PHP's strings are the bytes. */
function texts(IdGenServiceClient $client): void
{
    $text = $client->nextStringId('umlaut', true);
    like('/^Größe-№-[0-9]+$/Du', $text);
    same('Größe-№-', $client->describeType('umlaut')->prefix);
    same('grüß dich, 世界 😀', $client->echo('php', 'grüß dich, 世界 😀')->value);
}

/** Failures, typed or in `res`. */
function refusals(IdGenServiceClient $client): void
{
    refused(fn () => $client->nextId('no-such-type'), 'UNKNOWN_TYPE', false, null);
    refused(fn () => $client->nextIds('order', 0), 'INVALID_ARGUMENT', false, 'count');
    refused(fn () => $client->nextIds('order', -1), 'INVALID_ARGUMENT', false, 'count');
    refused(fn () => $client->nextId('down'), 'UNAVAILABLE', true, null);
    $answer = $client->getId('php', 'no-such-type');
    same([553, -1], [$answer->res, $answer->value]);
    like('/^UNKNOWN_TYPE: /', $answer->ext);
}

/** A node that takes the connection and says nothing costs one attempt. */
function silentNode(string $node): void
{
    $silent = stream_socket_server('tcp://127.0.0.1:0');
    $connected = 0;
    $nodes = new Nodes(
        [stream_socket_get_name($silent, false), $node],
        timeoutMs: 1000,
        onConnect: function () use (&$connected): void {
            $connected++;
        },
    );
    above(0, $nodes->call(fn ($client) => $client->nextId('order')));
    same([2, 2], [$nodes->tried, $connected]);
    // It stays where it was answered.
    above(0, $nodes->call(fn ($client) => $client->nextId('order')));
    same([1, 2], [$nodes->tried, $connected]);
    refused(
        fn () => $nodes->call(fn ($client) => $client->nextId('no-such-type')),
        'UNKNOWN_TYPE',
        false,
        null,
    );
    same(1, $nodes->tried);
    $nodes->close();
    fclose($silent);
}

/** So does one that resets the connection. */
function resettingNode(string $node): void
{
    $server = stream_socket_server('tcp://127.0.0.1:0');
    $connected = 0;
    $nodes = new Nodes(
        [stream_socket_get_name($server, false), $node],
        onConnect: function () use (&$connected, $server): void {
            if ($connected++ === 0) {
                $accepted = stream_socket_accept($server);
                // To close means to reset, so.
                $linger = ['l_onoff' => 1, 'l_linger' => 0];
                socket_set_option(socket_import_stream($accepted), SOL_SOCKET, SO_LINGER, $linger);
                fclose($accepted);
            }
        },
    );
    above(0, $nodes->call(fn ($client) => $client->nextId('order')));
    same([2, 2], [$nodes->tried, $connected]);
    $nodes->close();
    fclose($server);
}

same(true, extension_loaded('thrift_protocol'));
$node = getenv('CLIENTS_NODE');
[$host, $port] = explode(':', $node);
$last = 0;
foreach ([TFramedTransport::class, TBufferedTransport::class] as $transport) {
    $protocols = [TBinaryProtocol::class, TBinaryProtocolAccelerated::class, TCompactProtocol::class];
    foreach ($protocols as $protocol) {
        $socket = new TSocket($host, (int) $port);
        $socket->setSendTimeout(10_000);
        $socket->setRecvTimeout(10_000);
        $wrapped = new $transport($socket);
        $client = new IdGenServiceClient(new $protocol($wrapped));
        $wrapped->open();
        $last = ids($client, $last);
        large($client);
        texts($client);
        refusals($client);
        $wrapped->close();
        echo "$transport $protocol: ok\n";
    }
}
silentNode($node);
echo "silent node: ok\n";
resettingNode($node);
echo "resetting node: ok\n";
