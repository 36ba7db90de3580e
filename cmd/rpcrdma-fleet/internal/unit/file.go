package unit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/internal/printable"
	"github.com/rpcrdma/toolkit/internal/units"
)

const (
	// outOfOrder is how far back in time a file may begin: captures are not sorted to the nanosecond.
	outOfOrder = int64(time.Second)
	tellEvery  = 2 * time.Second
)

// file decodes one capture. What is wrong with it is a problem of the unit; that it cannot be read is an error.
func (r *run) file(f *layout.File) error {
	src := &source{}
	reader, err := capture.OpenSeries([]capture.Source{{Name: f.URL, Size: f.Size, Open: func() (io.ReadCloser, error) {
		src.Reader, src.err = r.in.Open(r.ctx, *f, 0)
		return src, src.err
	}}}, capture.Options{BatchSize: r.batchFor(f), First: r.pass.Decoder().Stats().Packets})
	switch {
	case errors.Is(src.err, store.ErrNotFound), errors.Is(src.err, store.ErrChanged):
		// A ring deletes or overwrites its oldest file: that costs this file only, unless there is no other.
		if r.kept.gone++; r.kept.gone == len(r.u.Files) || r.again {
			return src.err
		}
		r.problem(layout.Problem{File: f.URL, Text: without(src.err.Error(), f.URL+": ")})
	case src.err != nil:
		return src.err
	case err != nil: // garbage, or nothing at all
		src.Close()
		r.kept.skipped++
		r.problem(layout.Problem{File: f.URL, Text: without(err.Error(), f.URL+": ")})
	default:
		defer reader.Close()
		r.begins(f)
		if err := r.decode(f, reader, src); err != nil {
			return err
		}
		if err := r.ended(); err != nil {
			return err
		}
	}
	r.kept.files++
	r.kept.stored += f.Size
	r.tell(0, 0)
	return nil
}

// begins remembers which packets are of a file. Of very many files, the last ones are known.
func (r *run) begins(f *layout.File) {
	name, _, _ := strings.Cut(f.URL, "?")
	if len(r.kept.captures) == state.MaxCaptures {
		r.kept.captures = slices.Delete(r.kept.captures, 0, 1)
	}
	r.kept.captures = append(r.kept.captures, state.Capture{Name: name, Before: r.pass.Decoder().Stats().Packets})
}

// batchFor is how many bytes of packets are read at once: of a small file, of which there may be many, not more than it
// has.
func (r *run) batchFor(f *layout.File) int {
	const small = 32 << 10
	if f.Size < small {
		return small
	}
	return r.batch
}

// without takes off a prefix that is said elsewhere.
func without(s, prefix string) string {
	if len(s) > len(prefix) && s[:len(prefix)] == prefix {
		return s[len(prefix):]
	}
	return s
}

func (r *run) decode(f *layout.File, reader capture.Reader, src *source) error {
	in := &input{Reader: reader, run: r, last: r.pass.Decoder().Stats().Last.Time}
	if err := r.pass.Feed(in); err != nil {
		return err
	}
	if src.err != nil {
		return src.err
	}
	if err := context.Cause(r.ctx); err != nil {
		return err
	}
	if err := src.Check(); err != nil {
		return err
	}
	list, total := reader.Problems()
	for _, p := range list {
		r.problem(layout.Problem{File: f.URL, Packet: p.Packet, Offset: p.Offset, Text: problemText(p)})
	}
	r.kept.damage += uint64(total - len(list))
	if in.err != nil {
		r.problem(layout.Problem{File: f.URL, Text: without(in.err.Error(), f.URL+": ")})
	}
	r.kept.cut += in.cut
	if in.late {
		r.kept.late++
	}
	return nil
}

func problemText(p *capture.Problem) string {
	if p.Err != nil {
		return p.Text + ": " + p.Err.Error()
	}
	return p.Text
}

// source is the bytes of a file. It keeps errors of the store apart from those of the file.
type source struct {
	*store.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && s.err == nil {
		s.err = err
	}
	return n, err
}

// input is a capture on its way to the decoder.
type input struct {
	capture.Reader
	run     *run
	last    int64 // time of the newest packet before
	begun   bool
	late    bool
	packets uint64
	cut     uint64
	err     error // of the capture, after which no more of it can be read
}

func (in *input) Read(b *capture.Batch) error {
	if in.run.ctx.Err() != nil {
		b.Reset()
		return io.EOF
	}
	err := in.Reader.Read(b)
	if err != nil {
		if !errors.Is(err, io.EOF) {
			in.err = err
		}
		return io.EOF
	}
	if !in.begun {
		in.begun = true
		in.late = in.last != 0 && b.Packets[0].Time < in.last-outOfOrder
	}
	for i := range b.Packets {
		if p := &b.Packets[i]; uint32(len(p.Data)) < p.Length {
			in.cut++
		}
	}
	in.packets += uint64(len(b.Packets))
	if now := time.Now(); now.Sub(in.run.told) >= tellEvery {
		read, _ := in.Reader.(capture.Progresser).Progress()
		in.run.tell(read, in.packets)
	}
	return nil
}

// tell tells of progress: what has been read of a file besides those that are done.
func (r *run) tell(read int64, packets uint64) {
	r.told = time.Now()
	p := r.before
	if packets == 0 {
		st := r.pass.Decoder().Stats()
		p.Packets, p.Transactions = st.Packets, st.Transactions
		p.Files, p.Stored = r.kept.files, r.kept.stored
		r.before = p
	}
	p.Stored += read
	p.Packets += packets
	r.opt.Progress(p)
}

// problem keeps a problem, or counts it.
func (r *run) problem(p layout.Problem) {
	r.kept.damage++
	if len(r.kept.problems) < layout.MaxProblems {
		p.Text = printable.Line(p.Text)
		r.kept.problems = append(r.kept.problems, p)
	}
}

// malformed keeps a malformed message.
func (r *run) malformed(v *rpc.View) {
	v.Malformed(func(packet uint64, part string, err error) {
		r.problem(layout.Problem{Packet: packet, Text: fmt.Sprintf("XID 0x%08x: malformed %s: %v", v.Tx.XID, part, err)})
	})
}

// done says what was found, except for results of the collectors.
func (r *run) done() *layout.Done {
	k, dec := &r.kept, r.pass.Decoder()
	st := dec.Stats()
	d := &layout.Done{
		Unit: r.u.ID, Tap: r.u.Tap, Version: Version(), Damage: k.damage, Problems: k.problems, Results: k.results, Notes: []string{},
		Follows: k.follows, Apart: k.apart, Ended: k.ended,
		Counts: layout.Counts{
			Files: k.files, Stored: k.stored, Packets: st.Packets - k.base.Packets, Bytes: st.Bytes - k.base.Bytes,
			Transactions: st.Transactions - k.base.Transactions, Connections: st.Connections - k.base.Connections,
		},
	}
	if st.Packets > 0 {
		d.Last = time.Unix(0, max(st.Last.Time, k.last)).UTC()
	}
	if d.Problems == nil {
		d.Problems = []layout.Problem{}
	}
	if d.Results == nil {
		d.Results = []layout.Result{}
	}
	for i := range k.results {
		d.Counts.Rows += k.results[i].Rows
	}
	if bad := st.Undecodable - st.CutShort; bad > 0 {
		d.Damage += bad
		d.Notes = append(d.Notes, units.Plural(bad, "packet")+" with malformed headers")
	}
	if n := st.OddFragments; n > 0 {
		d.Damage += n
		d.Notes = append(d.Notes, units.Plural(n, "IP fragment")+" that cannot be part of a datagram, or contradicted by others")
	}
	if m := dec.Orphans().Malformed; m.Total() > 0 {
		d.Damage += m.Total()
		d.Notes = append(d.Notes, fmt.Sprintf("%s, the first in packet %d: %s",
			units.Plural(m.Total(), "malformed RPC-over-RDMA header"), m.First.Ref.Number, text.HeaderFaults(nil, &m)))
	}
	d.Damage += st.Misframed.Count + st.Differing.Count + st.Displaced.Count + st.Mismarked.Count
	d.Notes = append(d.Notes, text.Streams(&st)...)
	d.Notes = append(d.Notes, text.Attempts(&st)...)
	for _, s := range []string{text.Sequences(&st.Sequences), text.Sampled(&st.Sampled)} {
		if s != "" {
			d.Notes = append(d.Notes, s)
		}
	}
	if g := &st.Sealed; g.Count > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("%s of RPC connections over TCP with TLS: %s not decoded", units.Plural(g.Count, "direction"), units.Plural(g.Bytes, "encrypted byte")))
	}
	note := func(n uint64, what, rest string) {
		if n > 0 {
			d.Notes = append(d.Notes, units.Plural(n, what)+" "+rest)
		}
	}
	note(uint64(k.skipped), "file", "without a capture in them")
	note(k.late, "file", "out of order: the first packet is older than the last one of the file before")
	note(k.cut, "packet", "cut to the capture's snapshot length; what is missing is not decoded")
	if s := text.CutBefore(&st); s != "" {
		d.Notes = append(d.Notes, s)
	}
	if st.Packets > 1 && st.First.Time == st.Last.Time && st.Transactions > 0 {
		d.Notes = append(d.Notes, "the first and the last packet have the same time: captures without times do not tell how long anything took")
	}
	if s := text.Backwards(&st.Backwards); s != "" {
		d.Notes = append(d.Notes, s)
	}
	note(st.NotSplit, "datagram", "of several packets that could not be taken apart")
	note(st.BadICRC, "packet", fmt.Sprintf("with a wrong ICRC, of %d checked", st.BadICRC+st.GoodICRC))
	note(st.BadCRC, "FPDU", "with a wrong CRC")
	note(dec.Orphans().Evicted, "open call", "given up for lack of memory")
	note(st.EvictedConnections, "connection", "no longer followed for lack of memory, and shown as evicted")
	note(st.IncompleteDatagrams, "IP datagram", "with fragments that are not in the capture: not decoded")
	note(st.EvictedDatagrams, "IP datagram", "given up before all fragments had come")
	if k.lost > 0 {
		d.Damage += k.lost
		d.Notes = append(d.Notes, units.Plural(k.lost, "transaction")+" not written to Parquet: the times in the captures jump about")
	}
	if d.Damage > 0 {
		d.Status = 3
	}
	return d
}
