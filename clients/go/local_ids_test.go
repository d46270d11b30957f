package idgenclient

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/thrift/lib/go/thrift"

	"idgenclient/idgen"
)

const nobody = "127.0.0.1:1"

// standIn is a node whose LeaseRange is answer, by the number of the call from 0.
type standIn struct {
	idgen.IdGenService
	answer  func(call int64) (*idgen.RangeLease, error)
	asked   atomic.Int64
	calls   chan struct{}
	address string
}

func newStandIn(t *testing.T, answer func(call int64) (*idgen.RangeLease, error)) *standIn {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	node := &standIn{answer: answer, calls: make(chan struct{}, 1000), address: listener.Addr().String()}
	server := thrift.NewTSimpleServer4(
		idgen.NewIdGenServiceProcessor(node),
		thrift.NewTServerSocketFromAddrTimeout(listener.Addr(), 0),
		thrift.NewTFramedTransportFactoryConf(thrift.NewTTransportFactory(), nil),
		thrift.NewTCompactProtocolFactoryConf(nil))
	must(t, listener.Close())
	must(t, server.Listen())
	go server.AcceptLoop()
	t.Cleanup(func() { server.Stop() })
	return node
}

func (s *standIn) LeaseRange(_ context.Context, _ string, _, _ int64) (*idgen.RangeLease, error) {
	call := s.asked.Add(1) - 1
	s.calls <- struct{}{}
	return s.answer(call)
}

func (s *standIn) untilAsked(times int) {
	for i := 0; i < times; i++ {
		<-s.calls
	}
}

// manual is a clock that is set by hand.
type manual struct{ passed atomic.Int64 }

func (m *manual) now() time.Time { return time.Unix(1000, m.passed.Load()) }

func (m *manual) pass(d time.Duration) { m.passed.Add(int64(d)) }

func begin(t *testing.T, set Settings) *LocalIDs {
	if set.Type == "" {
		set.Type = "event"
	}
	l := NewLocalIDs(set)
	t.Cleanup(l.Close)
	return l
}

func expect(t *testing.T, l *LocalIDs, wanted ...int64) {
	t.Helper()
	for _, id := range wanted {
		got, err := l.Next(ctx)
		must(t, err)
		equal(t, id, got)
	}
}

func unavailable() error {
	return &idgen.IdGenException{Code: "UNAVAILABLE", Message: "as told", Retriable: true}
}

func TestManyGoroutines(t *testing.T) {
	const each = 40_000
	// Long leases, so that the goroutines meet in one of them and not in the wait for it.
	l := begin(t, Settings{Nodes: []string{os.Getenv("CLIENTS_NODE")}, Count: 100_000})
	found := new([64][each]int64)
	var wait sync.WaitGroup
	for at := range found {
		wait.Add(1)
		go func(into *[each]int64) {
			defer wait.Done()
			for i := range into {
				id, err := l.Next(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				into[i] = id
			}
		}(&found[at])
	}
	wait.Wait()
	all := make(map[int64]bool, len(found)*each)
	for at := range found {
		for i, id := range found[at] {
			if all[id] {
				t.Fatalf("%d twice", id)
			}
			if i > 0 && id <= found[at][i-1] {
				t.Fatalf("%d after %d", id, found[at][i-1])
			}
			all[id] = true
		}
	}
}

func TestARestartOfTheNode(t *testing.T) {
	data := t.TempDir()
	thriftAt, httpAt := freeAddress(t), freeAddress(t)
	node := start(t, data, thriftAt, httpAt)
	made, err := exec.Command(os.Getenv("CLIENTS_PROGRAM"), "type", "add", "event", "--mode",
		"segment", "--url", "http://"+httpAt, "--data", data).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, made)
	}
	l := begin(t, Settings{Nodes: []string{thriftAt}, Count: 100})
	all := map[int64]bool{}
	take := func(ctx context.Context, count int) error {
		for i := 0; i < count; i++ {
			id, err := l.Next(ctx)
			if err != nil {
				return err
			}
			if all[id] {
				t.Fatalf("%d twice", id)
			}
			all[id] = true
		}
		return nil
	}
	must(t, take(ctx, 1))
	stop(node)
	// What is leased goes on without the node, up to its end.
	must(t, take(ctx, 99))
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	// Perhaps one more lease was there already.
	if take(short, 101) == nil {
		t.Fatal("ids without a lease")
	}
	start(t, data, thriftAt, httpAt)
	must(t, take(ctx, 300))
}

func TestTheLifeCountsFromWhenTheCallWasSent(t *testing.T) {
	var clock manual
	node := newStandIn(t, func(call int64) (*idgen.RangeLease, error) {
		clock.pass(600 * time.Millisecond)
		return &idgen.RangeLease{First: 100 * (call + 1), Count: 10, Step: 1, TtlMs: 1000}, nil
	})
	l := begin(t, Settings{Nodes: []string{node.address}, now: clock.now})
	expect(t, l, 100)
	clock.pass(375 * time.Millisecond)
	expect(t, l, 101)
	// 625 ms after the answer, but 1225 ms after the call.
	clock.pass(250 * time.Millisecond)
	expect(t, l, 200)
}

func TestALeaseInReserveExpiresToo(t *testing.T) {
	var clock manual
	node := newStandIn(t, func(call int64) (*idgen.RangeLease, error) {
		return &idgen.RangeLease{First: 100 * (call + 1), Count: 2, Step: 1, TtlMs: 1000}, nil
	})
	l := begin(t, Settings{Nodes: []string{node.address}, now: clock.now})
	expect(t, l, 100, 101)
	// The one in reserve is on its way, asked for at time 0.
	node.untilAsked(2)
	clock.pass(time.Second)
	expect(t, l, 300)
}

func TestTheStep(t *testing.T) {
	node := newStandIn(t, func(call int64) (*idgen.RangeLease, error) {
		return &idgen.RangeLease{First: 5 + 300*call, Count: 3, Step: 7, TtlMs: 60_000}, nil
	})
	expect(t, begin(t, Settings{Nodes: []string{node.address}}), 5, 12, 19, 305, 312)
}

func TestTheNextLeaseComesInTheBackground(t *testing.T) {
	gate := make(chan struct{})
	node := newStandIn(t, func(call int64) (*idgen.RangeLease, error) {
		if call == 1 {
			<-gate
		}
		return &idgen.RangeLease{First: 100 * (call + 1), Count: 10, Step: 1, TtlMs: 60_000}, nil
	})
	l := begin(t, Settings{Nodes: []string{node.address}, Attempt: time.Minute})
	expect(t, l, 100, 101, 102, 103, 104, 105)
	node.untilAsked(2)
	// Asked for, and not there: the rest of the first goes out meanwhile.
	expect(t, l, 106, 107, 108, 109)
	close(gate)
	expect(t, l, 200)
}

func TestTheNextNodeTakesOver(t *testing.T) {
	down := newStandIn(t, func(int64) (*idgen.RangeLease, error) { return nil, unavailable() })
	l := begin(t, Settings{Nodes: []string{nobody, down.address, os.Getenv("CLIENTS_NODE")}, Count: 100})
	all := map[int64]bool{}
	for i := 0; i < 1000; i++ {
		id, err := l.Next(ctx)
		must(t, err)
		all[id] = true
	}
	equal(t, 1000, len(all))
	equal(t, true, down.asked.Load() > 0)
}

func TestANodeThatDoesNotAnswerIsPassedOver(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer silent.Close()
	nodes := []string{silent.Addr().String(), os.Getenv("CLIENTS_NODE")}
	l := begin(t, Settings{Nodes: nodes, Attempt: 200 * time.Millisecond})
	_, err = l.Next(ctx)
	must(t, err)
}

func TestWhatNoRetryHelpsIsReturnedAtOnce(t *testing.T) {
	nodes := []string{os.Getenv("CLIENTS_NODE")}
	// The context has no end: a wait for it would be seen.
	_, err := begin(t, Settings{Nodes: nodes, Type: "no-such-type"}).Next(ctx)
	refused(t, err, "UNKNOWN_TYPE", false, "")
	_, err = begin(t, Settings{Nodes: nodes, Type: "order"}).Next(ctx)
	refused(t, err, "INVALID_ARGUMENT", false, "idType")
}

func TestWhatARetryMayHelpIsReturnedInTheEnd(t *testing.T) {
	down := newStandIn(t, func(int64) (*idgen.RangeLease, error) { return nil, unavailable() })
	l := begin(t, Settings{Nodes: []string{down.address}})
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	_, err := l.Next(short)
	refused(t, err, "UNAVAILABLE", true, "")
}

func TestAfterAFailureItGoesOn(t *testing.T) {
	node := newStandIn(t, func(call int64) (*idgen.RangeLease, error) {
		if call < 3 {
			return nil, unavailable()
		}
		return &idgen.RangeLease{First: 100, Count: 10, Step: 1, TtlMs: 60_000}, nil
	})
	expect(t, begin(t, Settings{Nodes: []string{node.address}}), 100)
}

func TestOnConnectComesBeforeTheCalls(t *testing.T) {
	var seen string
	l := begin(t, Settings{
		Nodes: []string{os.Getenv("CLIENTS_NODE")},
		OnConnect: func(ctx context.Context, client *Client) error {
			said, err := client.Echo(ctx, "me", "hello")
			seen = said.GetValue()
			return err
		},
	})
	_, err := l.Next(ctx)
	must(t, err)
	equal(t, "hello", seen)
}

func TestTheEnd(t *testing.T) {
	l := begin(t, Settings{Nodes: []string{os.Getenv("CLIENTS_NODE")}})
	_, err := l.Next(ctx)
	must(t, err)
	l.Close()
	l.Close()
	_, err = l.Next(ctx)
	equal(t, true, errors.Is(err, ErrClosed))
}

func freeAddress(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// start gives a node, when it is ready. It is killed in the end.
func start(t *testing.T, data, thriftAt, httpAt string) *exec.Cmd {
	node := exec.Command(os.Getenv("CLIENTS_PROGRAM"), "serve", "--data", data,
		"--thrift", thriftAt, "--http", httpAt)
	said, err := node.StdoutPipe()
	must(t, err)
	must(t, node.Start())
	t.Cleanup(func() { stop(node) })
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "  admin ") {
			return node
		}
	}
	t.Fatal("the node did not start")
	return nil
}

func stop(node *exec.Cmd) {
	node.Process.Kill()
	node.Wait()
}

func BenchmarkAtomic(b *testing.B) {
	var counter atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			counter.Add(1)
		}
	})
}

func BenchmarkLocalIDs(b *testing.B) {
	l := NewLocalIDs(Settings{
		Nodes: []string{os.Getenv("CLIENTS_NODE")}, Type: "event", Count: 10_000_000,
	})
	defer l.Close()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := l.Next(ctx); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
