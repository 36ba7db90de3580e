package index

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"sort"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

const (
	// DefaultStep is how many bytes of a capture a segment has, at least: decoded in less than a tenth of a second.
	DefaultStep = 64 << 20
	// DefaultWorth is how many bytes of a capture a byte of a state is worth: where states are large, segments are longer.
	DefaultWorth = 64
)

// Maker makes an index while a capture is decoded.
type Maker struct {
	// Step is how many bytes a segment has, at least; 0 means DefaultStep.
	Step int64
	// Worth is how many times as long as its state a segment is, at least; 0 means DefaultWorth.
	Worth int64

	file  *os.File
	state decode.StateOptions
	w     *writer
	dir   directory
	err   error

	now     entries // of the segment at hand
	emitted uint64
	table   []byte
	sums    []chan summed
}

type summed struct {
	sum uint32
	err error
}

// NewMaker begins an index of a capture file, written to w and signed with a key. state has the parts that belong to
// the state besides the decoder's own.
func NewMaker(w io.Writer, file *os.File, key []byte, state decode.StateOptions) (*Maker, error) {
	id, err := Identify(file, key)
	if err != nil {
		return nil, err
	}
	m := &Maker{file: file, state: state}
	m.dir.Capture = id
	if m.w, err = newWriter(w, key); err != nil {
		return nil, err
	}
	return m, nil
}

// Run decodes the whole capture, as d.Run does. Its error is that of the input: see Finish for that of the index.
func (m *Maker) Run(d *decode.Decoder, r capture.Reader) error {
	m.begin(d, capture.Place{})
	p := &pauser{Reader: r}
	for {
		p.next = m.next()
		if err := d.Feed(p); err != nil {
			d.Flush()
			m.fail(err)
			return err
		}
		if !p.paused {
			break
		}
		p.paused = false
		m.end(p.at.Offset)
		m.begin(d, p.at)
	}
	m.end(m.dir.Capture.Size)
	d.Flush()
	m.dir.Flushed = m.xids()
	return nil
}

// next is the offset at which the next segment begins, or soon after.
func (m *Maker) next() int64 {
	if m.err != nil || len(m.dir.Segments) > maxSegments-1 {
		return math.MaxInt64
	}
	step, worth := cmp.Or(m.Step, DefaultStep), cmp.Or(m.Worth, DefaultWorth)
	s := &m.dir.Segments[len(m.dir.Segments)-1]
	step = max(step, m.dir.Capture.Size/maxSegments+1)
	if s.Offset > 0 {
		step = max(step, worth*(s.State.Length+s.Place.Length))
	}
	return s.Offset + step
}

// fail gives the index up.
func (m *Maker) fail(err error) {
	if m.err == nil {
		m.err = err
	}
	m.now = entries{}
}

// begin begins a segment.
func (m *Maker) begin(d *decode.Decoder, at capture.Place) {
	if m.err != nil {
		return
	}
	s := segment{Offset: at.Offset, Packets: at.Packets, Emitted: m.emitted, Stats: d.Stats()}
	var err error
	if at.Packets > 0 {
		var text []byte
		if text, err = json.Marshal(at); err == nil {
			s.Place, err = m.w.packed(text)
		}
	}
	if err == nil {
		s.State, err = m.w.part(func(w io.Writer) error { return d.SaveState(w, m.state) })
	}
	if err == nil && s.State.Length > maxPart {
		err = errors.New("a state is too long")
	}
	if err != nil {
		m.fail(err)
		return
	}
	m.dir.Segments = append(m.dir.Segments, s)
}

// end ends the segment at hand, at an offset.
func (m *Maker) end(to int64) {
	if m.err != nil {
		return
	}
	s := &m.dir.Segments[len(m.dir.Segments)-1]
	s.XIDs = m.xids()
	c, from := make(chan summed, 1), s.Offset
	m.sums = append(m.sums, c)
	go func() { // while the next one is decoded
		sum, err := checksum(m.file, from, to)
		c <- summed{sum, err}
	}()
}

// xids writes what was emitted.
func (m *Maker) xids() (p part) {
	if m.err != nil {
		return p
	}
	m.table = m.now.append(m.table[:0])
	m.now.reset()
	p, err := m.w.packed(m.table)
	if err != nil {
		m.fail(err)
	}
	return p
}

// Add takes a transaction that the decoder has emitted.
func (m *Maker) Add(tx *transaction.Transaction) {
	m.emitted++
	if m.err != nil {
		return
	}
	last := len(m.dir.Segments) - 1
	m.now.add(entry{tx.XID, uint32(last - m.dir.start(tx))})
}

// start is the segment in which a transaction has its first packet.
func (d *directory) start(tx *transaction.Transaction) int {
	n, last := tx.First().Number, len(d.Segments)-1
	if d.Segments[last].Packets < n { // nearly all, while an index is made
		return last
	}
	return max(0, sort.Search(len(d.Segments), func(i int) bool { return d.Segments[i].Packets >= n })-1)
}

// errTight means that tracing a transaction could make the decoder give something up.
var errTight = errors.New("decoding it needs more than half of the memory")

// Finish writes the rest. It returns an error if the index is not to be used.
func (m *Maker) Finish(d *decode.Decoder, outcome any) error {
	for i, c := range m.sums {
		s := <-c
		if s.err != nil {
			m.fail(s.err)
		} else if i < len(m.dir.Segments) {
			m.dir.Segments[i].Sum = s.sum
		}
	}
	m.sums = nil
	if m.err != nil {
		return m.err
	}
	if b := d.Memory(); b.Evicted() > 0 || b.Peak() > b.Limit()/2 {
		return errTight
	}
	now, err := Identify(m.file, m.w.key)
	if err != nil {
		return err
	}
	if now != m.dir.Capture {
		return errors.New("the capture was written meanwhile")
	}
	if m.dir.Outcome, err = json.Marshal(outcome); err != nil {
		return err
	}
	m.dir.Total = m.emitted
	return m.w.finish(&m.dir)
}

// pauser is a Reader that ends at the first place behind an offset, for now.
type pauser struct {
	capture.Reader
	next   int64
	at     capture.Place
	paused bool
	place  bool // at is where the next Read begins
}

// Read implements capture.Reader.
func (p *pauser) Read(b *capture.Batch) error {
	if p.place {
		p.place = false
		if !p.paused {
			p.paused = true
			b.Packets = b.Packets[:0]
			return io.EOF
		}
	}
	err := p.Reader.Read(b)
	if err == nil && p.next < math.MaxInt64 {
		if r, ok := p.Reader.(capture.Placer); ok {
			if at, ok := r.Place(); ok && at.Offset >= p.next {
				p.at, p.place = at, true
			}
		}
	}
	return err
}
