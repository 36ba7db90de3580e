package connections

import (
	"fmt"
	"sync"

	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// maxRecognized is how many open connections are watched at a time.
const maxRecognized = 1024

// Policies are what the ends of a connection seem to follow, by their calls in the forward direction and the replies.
type Policies struct {
	Registration Registration
	Asks, Grants Credits
}

// handleSize is about what an entry of a map of handles takes, in bytes.
const handleSize = 24

// Recognizer finds the policies of connections. Several goroutines may use it.
type Recognizer struct {
	mu    sync.Mutex
	conns map[int]*watched
	room  int // for handles of all connections
}

// NewRecognizer makes a Recognizer that remembers handles in the given number of bytes.
func NewRecognizer(memory int) *Recognizer {
	return &Recognizer{conns: make(map[int]*watched), room: memory / handleSize}
}

type watched struct {
	memory       handles
	asks, grants creditValues
}

// Transaction is meant for transactions that have ended.
func (r *Recognizer) Transaction(tx *transaction.Transaction) {
	call := &tx.Call
	if tx.Backward || !call.Transport || !call.Header.Fixed() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	id := tx.Connection.Resolve().ID
	k := r.conns[id]
	if k == nil {
		if len(r.conns) >= maxRecognized {
			return
		}
		k = new(watched)
		k.memory.room = &r.room
		r.conns[id] = k
	}
	k.memory.call(&call.Header)
	if call.Header.Version == rpcrdma.Version0 {
		return // it has no credits
	}
	asked := call.Header.Credits
	k.asks.add(said{asked, tx.InFlight, tx.Window})
	if reply := &tx.Reply; reply.Transport && reply.Header.Fixed() {
		k.grants.add(said{value: reply.Header.Credits, window: asked})
	}
}

// Take returns what was found of a connection that is closed, and forgets it.
func (r *Recognizer) Take(c *rdma.Connection) (p Policies) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.conns[c.ID]; k != nil {
		p = Policies{k.memory.guess(), k.asks.guess(true), k.grants.guess(false)}
		r.room += len(k.memory.seen) + len(k.memory.last)
		delete(r.conns, c.ID)
	}
	return p
}

// lines say what the client, or the server, seems to do.
func (p *Policies) lines(server bool) (out []string) {
	list := []string{p.Registration.text(), p.Asks.text("asks for", "server granted last")}
	if server {
		list = []string{p.Grants.text("grants", "call asks for")}
	}
	for _, s := range list {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// append appends what is known as keys of a JSON object.
func (p *Policies) append(b []byte) []byte {
	if r := &p.Registration; r.Mode != RegistrationUnknown {
		b = fmt.Appendf(b, `,"registration":{"mode":"%s","reason":`, r.Mode)
		b = ndjson.Quote(b, r.reason())
		b = fmt.Appendf(b, `,"calls":%d,"offers":%d,"segments":%d,"handles":%d}`, r.Calls, r.Offers, r.Segments, r.Handles)
	}
	for i, c := range [...]*Credits{&p.Asks, &p.Grants} {
		if c.Policy == CreditsUnknown {
			continue
		}
		b = fmt.Appendf(b, `,"%s":{"policy":"%s","messages":%d,"value":%d`, [...]string{"credits_asked", "credits_granted"}[i], c.Policy, c.Messages, c.Value)
		if c.Policy == CreditsOSU {
			b = fmt.Appendf(b, `,"factor":%.4g`, c.Factor)
			if i == 0 {
				b = fmt.Appendf(b, `,"threshold_min":%d,"threshold_max":%d`, c.Least+1, c.Most)
			}
		}
		b = fmt.Appendf(b, `,"zero":%t}`, c.Zero)
	}
	return b
}

func (p *Policies) code(k *state.Coder) {
	p.Registration.code(k)
	p.Asks.code(k)
	p.Grants.code(k)
}
