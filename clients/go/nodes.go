// Package idgenclient calls IdGen, and hands out ids from leases.
package idgenclient

import (
	"context"
	"errors"
	"math/rand"
	"time"

	"github.com/apache/thrift/lib/go/thrift"

	"idgenclient/idgen"
)

// Client is what the Thrift compiler makes.
type Client = idgen.IdGenServiceClient

// Nodes is one connection, to the first of the nodes that works. For one goroutine at
// a time, as every Thrift client.
type Nodes struct {
	// Addresses as "10.0.0.1:5900"; at least one.
	Addresses []string
	// Timeout is how long connecting, and each answer, may take. 2 s if 0.
	Timeout time.Duration
	// Attempts is how often a call is tried, over all nodes. 4 if 0.
	Attempts int
	// OnConnect is called after each connecting, unless it is nil: authenticate
	// there, if your cluster wants a token.
	OnConnect func(context.Context, *Client) error
	// Tried is how many attempts the last call took.
	Tried int

	at        int
	transport thrift.TTransport
	client    *Client
}

// Call calls method with a connected client. It tries again, on the next node, where a
// retry may help: after an IdGenException that says so, and where the node cannot be
// reached or does not answer. A repeated call may use up more ids; it never brings one
// twice.
func (n *Nodes) Call(ctx context.Context, method func(*Client) error) error {
	if len(n.Addresses) == 0 {
		return errors.New("no nodes")
	}
	attempts := n.Attempts
	if attempts == 0 {
		attempts = 4
	}
	for n.Tried = 1; ; n.Tried++ {
		err := n.connect(ctx)
		if err == nil {
			err = method(n.client)
		}
		if err == nil {
			return nil
		}
		var refused *idgen.IdGenException
		if errors.As(err, &refused) && !refused.Retriable {
			return err
		}
		// Perhaps half of a reply was read: nothing may read on behind it.
		n.Close()
		if !MayPass(err) || n.Tried == attempts {
			return err
		}
		n.at = (n.at + 1) % len(n.Addresses)
		if n.Tried%len(n.Addresses) == 0 {
			// Every node had its turn. At random, so that clients do not come in step.
			pause := 50*time.Millisecond + time.Duration(rand.Int63n(int64(100*time.Millisecond)))
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// Close closes the connection. The next call makes a new one.
func (n *Nodes) Close() {
	if n.transport != nil {
		n.transport.Close()
	}
	n.transport, n.client = nil, nil
}

func (n *Nodes) connect(ctx context.Context) error {
	if n.client != nil {
		return nil
	}
	timeout := n.Timeout
	if timeout == 0 {
		timeout = 2 * time.Second
	}
	set := &thrift.TConfiguration{ConnectTimeout: timeout, SocketTimeout: timeout}
	n.transport = thrift.NewTFramedTransportConf(
		thrift.NewTSocketConf(n.Addresses[n.at], set), set)
	if err := n.transport.Open(); err != nil {
		return err
	}
	client := idgen.NewIdGenServiceClientFactory(
		n.transport, thrift.NewTCompactProtocolFactoryConf(set))
	if n.OnConnect != nil {
		if err := n.OnConnect(ctx, client); err != nil {
			n.Close()
			return err
		}
	}
	n.client = client
	return nil
}

// MayPass tells whether the call that failed so may succeed later.
func MayPass(err error) bool {
	var refused *idgen.IdGenException
	if errors.As(err, &refused) {
		return refused.Retriable
	}
	var transport thrift.TTransportException
	var protocol thrift.TProtocolException
	return errors.As(err, &transport) || errors.As(err, &protocol)
}
