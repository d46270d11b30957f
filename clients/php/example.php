<?php

/** A client of IdGen: example.php HOST:PORT[,HOST:PORT…] [TYPE] */

declare(strict_types=1);

use IdGen\IdGenException;

require __DIR__ . '/autoload.php';
require __DIR__ . '/Nodes.php';

$type = $argv[2] ?? 'order';
$nodes = new Nodes(explode(',', $argv[1]));
try {
    echo 'id: ' . $nodes->call(fn ($client) => $client->nextId($type)) . "\n";

    $ranges = $nodes->call(fn ($client) => $client->nextIds($type, 100));
    $ids = [];
    foreach ($ranges as $range) {
        for ($at = 0; $at < $range->count; $at++) {
            $ids[] = $range->first + $at;
        }
    }
    echo 'ids: ' . $ids[0] . ' to ' . $ids[count($ids) - 1] . "\n";

    echo 'text: ' . $nodes->call(fn ($client) => $client->nextStringId($type, true)) . "\n";
} catch (IdGenException $error) {
    fwrite(STDERR, "failed after {$nodes->tried} attempts: {$error->code}: {$error->message}\n");
    exit(1);
}

try {
    $nodes->call(fn ($client) => $client->nextId('no-such-type'));
} catch (IdGenException $error) {
    echo 'refused: ' . $error->code . "\n";
}
$nodes->close();
