package idgenclient

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// ErrClosed is what Next returns after Close.
var ErrClosed = errors.New("idgen: closed")

// Settings of LocalIDs. What is left 0 is as told there.
type Settings struct {
	// Nodes as "10.0.0.1:5900".
	Nodes []string
	// Type is a segment type whose ids are in order.
	Type string
	// Count is how many ids a lease has: what you need in some seconds. 10 000.
	Count int64
	// TTL is how long a lease may live, 1 s to a day. A minute.
	TTL time.Duration
	// Attempt is how long one node may take to connect, or to answer. 2 s.
	Attempt time.Duration
	// OnConnect: see Nodes.
	OnConnect func(context.Context, *Client) error

	now func() time.Time
}

// LocalIDs hands out ids in this process, from leases, for any number of goroutines. A
// node is asked once per lease, in the background and before the ids run out. An id is
// handed out once. What is left of a lease when it expires, or at the end, is lost.
//
// The way of one id takes no lock: an index in the lease is counted up, and whoever got
// one that is still in the lease, before the lease expired, has its id.
type LocalIDs struct {
	set    Settings
	held   atomic.Pointer[lease]
	asked  atomic.Bool   // a lease is being fetched, or should be
	wanted chan struct{} // tells the fetcher; holds one
	ctx    context.Context
	end    context.CancelFunc
	ended  chan struct{}

	mutex    sync.Mutex
	spare    *lease
	err      error
	failures int
	changed  chan struct{} // closed, and made anew, when one of the three above changes
}

type lease struct {
	first, step, count int64
	low                int64 // from this index on, the next lease is fetched
	expires            time.Time
	taken              atomic.Int64
}

// NewLocalIDs begins. The first lease is fetched with the first Next. Close it in the end.
func NewLocalIDs(set Settings) *LocalIDs {
	if set.Count == 0 {
		set.Count = 10_000
	}
	if set.TTL == 0 {
		set.TTL = time.Minute
	}
	if set.now == nil {
		set.now = time.Now
	}
	l := &LocalIDs{
		set:     set,
		wanted:  make(chan struct{}, 1),
		ended:   make(chan struct{}),
		changed: make(chan struct{}),
	}
	l.ctx, l.end = context.WithCancel(context.Background())
	l.held.Store(&lease{})
	go l.fetch()
	return l
}

// Next returns the next id. Where there is none at hand it waits for a lease until the
// context ends, and then returns what went wrong meanwhile, if anything did; at once, if
// asking again would not help.
func (l *LocalIDs) Next(ctx context.Context) (int64, error) {
	for {
		held := l.held.Load()
		index := held.taken.Add(1) - 1
		// In this order: an id counts as handed out when its lease is seen to be alive.
		if index < held.count && l.set.now().Before(held.expires) {
			if index >= held.low && !l.asked.Load() {
				l.askAhead(held)
			}
			return held.first + index*held.step, nil
		}
		if err := l.renew(ctx, held); err != nil {
			return 0, err
		}
	}
}

// Close ends the goroutine in the background. Ids that were not handed out are lost.
func (l *LocalIDs) Close() {
	l.end()
	l.mutex.Lock()
	l.held.Store(&lease{})
	l.spare = nil
	l.mutex.Unlock()
	<-l.ended
}

func (l *LocalIDs) askAhead(held *lease) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.held.Load() == held && l.spare == nil {
		l.ask()
	}
}

// ask wakes the fetcher, unless it is at it. With the mutex held.
func (l *LocalIDs) ask() {
	if l.asked.CompareAndSwap(false, true) {
		l.wanted <- struct{}{}
	}
}

// renew returns when another lease than used is in use.
func (l *LocalIDs) renew(ctx context.Context, used *lease) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	seen := l.failures
	for {
		if l.ctx.Err() != nil {
			return ErrClosed
		}
		if l.held.Load() != used {
			return nil
		}
		if l.spare != nil {
			l.held.Store(l.spare)
			l.spare = nil
			l.asked.Store(false)
			return nil
		}
		if l.failures != seen && !MayPass(l.err) {
			return l.err
		}
		l.ask()
		changed := l.changed
		l.mutex.Unlock()
		var done error
		select {
		case <-changed:
		case <-l.ctx.Done():
		case <-ctx.Done():
			done = ctx.Err()
		}
		l.mutex.Lock()
		if done != nil {
			if l.failures != seen {
				return l.err
			}
			return done
		}
	}
}

// fetch brings a lease whenever one is asked for, until Close.
func (l *LocalIDs) fetch() {
	defer close(l.ended)
	// One round over the nodes at a time: the pauses between rounds are made here.
	nodes := &Nodes{
		Addresses: l.set.Nodes,
		Timeout:   l.set.Attempt,
		Attempts:  len(l.set.Nodes),
		OnConnect: l.set.OnConnect,
	}
	defer nodes.Close()
	pause := 50 * time.Millisecond
	for {
		select {
		case <-l.wanted:
		case <-l.ctx.Done():
			return
		}
		var got *lease
		err := nodes.Call(l.ctx, func(client *Client) error {
			// The life of a lease counts from before it is asked for: who counts from
			// the answer uses ids that the cluster has already given up.
			sent := l.set.now()
			answer, err := client.LeaseRange(
				l.ctx, l.set.Type, l.set.Count, l.set.TTL.Milliseconds())
			if err == nil {
				got = &lease{
					first: answer.First, step: answer.Step, count: answer.Count,
					low:     answer.Count / 2,
					expires: sent.Add(time.Duration(answer.TtlMs) * time.Millisecond),
				}
			}
			return err
		})
		if err == nil {
			pause = 50 * time.Millisecond
			l.mutex.Lock()
			if l.ctx.Err() == nil {
				// asked stays true as long as there is a lease in reserve.
				l.spare = got
			}
			l.tell()
			l.mutex.Unlock()
			continue
		}
		l.mutex.Lock()
		l.err = err
		l.failures++
		l.tell()
		l.mutex.Unlock()
		select {
		case <-time.After(pause):
		case <-l.ctx.Done():
			return
		}
		if pause *= 2; pause > time.Second {
			pause = time.Second
		}
		if MayPass(err) {
			l.wanted <- struct{}{}
		} else {
			l.asked.Store(false)
			l.mutex.Lock()
			l.tell() // who came meanwhile asks again
			l.mutex.Unlock()
		}
	}
}

// tell wakes who waits. With the mutex held.
func (l *LocalIDs) tell() {
	close(l.changed)
	l.changed = make(chan struct{})
}
