package index

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Run is a row of segments that have to be decoded for an answer.
type Run struct {
	From, To int            // segments; To is their number if the end of the capture belongs to it
	Starts   map[int]uint64 // wanted transactions by the segment of their first packet
}

// Find tells which segments have to be decoded for some XIDs, in the order of the capture.
func (x *Index) Find(xids ...uint32) ([]Run, error) {
	xids = slices.Clone(xids)
	slices.Sort(xids)
	var runs []Run
	for i := range len(x.Segments) + 1 {
		p := x.Flushed
		if i < len(x.Segments) {
			p = x.Segments[i].XIDs
		}
		table, err := x.unpack(p)
		if err != nil {
			return nil, err
		}
		here := min(i, len(x.Segments)-1) // what the end of the capture ends belongs to the last segment
		wrong := false
		err = find(table, xids, func(e entry) {
			from := here - int(e.lag)
			if wrong = wrong || from < 0; wrong {
				return
			}
			runs = append(runs, Run{From: from, To: i, Starts: map[int]uint64{from: 1}})
		})
		if err != nil {
			return nil, err
		}
		if wrong {
			return nil, errTable
		}
	}
	return join(runs), nil
}

// join makes one run of those that overlap.
func join(runs []Run) []Run {
	slices.SortStableFunc(runs, func(a, b Run) int { return a.From - b.From })
	var out []Run
	for _, r := range runs {
		if n := len(out); n > 0 && r.From <= out[n-1].To {
			o := &out[n-1]
			o.To = max(o.To, r.To)
			for k, v := range r.Starts {
				o.Starts[k] += v
			}
			continue
		}
		out = append(out, r)
	}
	return out
}

// Bytes is how many bytes of the capture a run decodes.
func (x *Index) Bytes(r *Run) int64 {
	to := x.Capture.Size
	if r.To+1 < len(x.Segments) {
		to = x.Segments[r.To+1].Offset
	}
	return to - x.Segments[r.From].Offset
}

// Emitted is how many transactions were emitted before a run.
func (x *Index) Emitted(r *Run) uint64 { return x.Segments[r.From].Emitted }

// Decode decodes a run with a new Decoder, whose Options and parts are those of the Maker's. It returns an error if
// something is not as it was then; what the Decoder has emitted is not to be used in that case.
func (x *Index) Decode(r *Run, d *decode.Decoder, opt decode.StateOptions, file *os.File, options capture.Options) error {
	s := &x.Segments[r.From]
	state, err := x.read(s.State)
	if err != nil {
		return err
	}
	if _, err := d.LoadState(state, opt); err != nil {
		return err
	}
	in, err := x.open(s, file.Name(), options)
	if err != nil {
		return err
	}
	defer in.Close()
	p := &bounded{Reader: in}
	for i := r.From; i <= r.To && i < len(x.Segments); i++ {
		to, last := x.Capture.Size, i+1 == len(x.Segments)
		p.packets, p.left = 0, 0
		if !last {
			n := &x.Segments[i+1]
			to, p.left = n.Offset, n.Packets-x.Segments[i].Packets
		}
		sum := make(chan summed, 1)
		go func() {
			v, err := checksum(file, x.Segments[i].Offset, to)
			sum <- summed{v, err}
		}()
		err := d.Feed(p)
		if v := <-sum; err == nil && v.err != nil {
			err = v.err
		} else if err == nil && v.sum != x.Segments[i].Sum {
			err = errors.New("the capture has other contents")
		}
		if err != nil {
			return err
		}
		if !last && d.Stats() != x.Segments[i+1].Stats {
			return errors.New("decoding a part of the capture gave something else than before")
		}
	}
	if r.To == len(x.Segments) {
		d.Flush()
	}
	return nil
}

// Verify is an error if this program, with these Options and parts, cannot go on where the Maker's decoder was.
func (x *Index) Verify(d *decode.Decoder, opt decode.StateOptions) error {
	state, err := x.read(x.Segments[0].State)
	if err != nil {
		return err
	}
	_, err = d.LoadState(state, opt)
	return err
}

func (x *Index) open(s *segment, name string, options capture.Options) (capture.Reader, error) {
	if s.Place.Length == 0 {
		return capture.Open([]string{name}, options)
	}
	text, err := x.unpack(s.Place)
	if err != nil {
		return nil, err
	}
	var at capture.Place
	if err := json.Unmarshal(text, &at); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	if at.Offset != s.Offset || at.Packets != s.Packets {
		return nil, fmt.Errorf("%w: place", ErrForeign)
	}
	return capture.OpenAt(name, at, options)
}

// Start is the segment in which a transaction has its first packet.
func (x *Index) Start(tx *transaction.Transaction) int { return x.start(tx) }

// Result is what the Maker's caller wanted to know of the whole capture.
func (x *Index) Result(v any) error { return json.Unmarshal(x.Outcome, v) }

// bounded is a Reader that ends after a number of packets, 0 for none, for now.
type bounded struct {
	capture.Reader
	packets, left uint64
}

// Read implements capture.Reader.
func (p *bounded) Read(b *capture.Batch) error {
	if p.left > 0 && p.packets >= p.left {
		b.Packets = b.Packets[:0]
		if p.packets > p.left {
			return errors.New("the capture has other packets")
		}
		return io.EOF
	}
	err := p.Reader.Read(b)
	p.packets += uint64(len(b.Packets))
	return err
}
