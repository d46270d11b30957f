<?php

declare(strict_types=1);

use IdGen\IdGenException;
use IdGen\IdGenServiceClient;
use Thrift\Exception\TApplicationException;
use Thrift\Exception\TException;
use Thrift\Protocol\TBinaryProtocolAccelerated;
use Thrift\Transport\TFramedTransport;
use Thrift\Transport\TSocket;

/**
 * One connection, to the first of the nodes that works; goes on to the next node
 * where one does not answer.
 *
 * Copy this file into your project, beside the code that the Thrift compiler makes.
 */
final class Nodes
{
    /** How many attempts the last call took. */
    public int $tried = 0;

    private int $at = 0;
    private ?TSocket $socket = null;
    private ?IdGenServiceClient $client = null;

    /**
     * @param string[] $nodes as '10.0.0.1:5900'
     * @param int $timeoutMs how long connecting, and each wait for the node, may take
     * @param ?\Closure $onConnect is called with the client after each connecting;
     *     authenticate there, if your cluster wants a token
     */
    public function __construct(
        private array $nodes,
        private int $timeoutMs = 2000,
        private int $attempts = 4,
        private ?\Closure $onConnect = null,
    ) {
        if ($nodes === []) {
            throw new \InvalidArgumentException('no nodes');
        }
        $this->nodes = array_values($nodes);
    }

    /**
     * What $method returns, which is called with a connected client.
     *
     * Tries again, on the next node, where a retry may help: after an IdGenException
     * that says so, and where the node cannot be reached or does not answer. A
     * repeated call may use up more ids; it never brings one twice.
     */
    public function call(\Closure $method): mixed
    {
        for ($attempt = 1; ; $attempt++) {
            $this->tried = $attempt;
            try {
                return $method($this->connected());
            } catch (IdGenException $error) {
                if (!$error->retriable || $attempt >= $this->attempts) {
                    throw $error;
                }
            } catch (TApplicationException $error) {
                // The node does not know the method: no other will.
                $this->close();
                throw $error;
            } catch (TException | \ErrorException $error) {
                // TSocket throws no more special class where it cannot connect. And it
                // lets PHP give notice of a broken connection, which frameworks throw.
                if ($attempt >= $this->attempts) {
                    $this->goOn();
                    throw $error;
                }
            } catch (\Throwable $error) {
                // Perhaps half of a reply was read: nothing may read on behind it.
                $this->close();
                throw $error;
            }
            $this->goOn();
            if ($attempt % count($this->nodes) === 0) {
                // Every node had its turn. At random, so that clients do not come in step.
                usleep(random_int(50_000, 150_000));
            }
        }
    }

    /** Closes the connection. The next call makes a new one. */
    public function close(): void
    {
        $socket = $this->socket;
        $this->socket = null;
        $this->client = null;
        // TSocket::close() fails if it is not open.
        if ($socket !== null && $socket->isOpen()) {
            $socket->close();
        }
    }

    private function goOn(): void
    {
        $this->close();
        $this->at = ($this->at + 1) % count($this->nodes);
    }

    private function connected(): IdGenServiceClient
    {
        if ($this->client === null) {
            // What is left of a connection that $onConnect failed with.
            $this->close();
            $node = $this->nodes[$this->at];
            $colon = strrpos($node, ':');
            $socket = new TSocket(substr($node, 0, $colon), (int) substr($node, $colon + 1));
            $socket->setSendTimeout($this->timeoutMs);
            $socket->setRecvTimeout($this->timeoutMs);
            $socket->open();
            $this->socket = $socket;
            // As quick as the extension is there, and works without it.
            $protocol = new TBinaryProtocolAccelerated(new TFramedTransport($socket));
            $client = new IdGenServiceClient($protocol);
            if ($this->onConnect !== null) {
                ($this->onConnect)($client);
            }
            $this->client = $client;
        }
        return $this->client;
    }
}
