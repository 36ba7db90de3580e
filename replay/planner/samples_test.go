package planner

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/transport"
)

var update = flag.Bool("update", false, "write the golden summaries anew")

// TestSamples makes a plan from each sample, compares its summary with the reviewed one, and
// checks the plan against its own rules.
func TestSamples(t *testing.T) {
	for _, name := range sampled.Captures(t, "*") {
		base, _, _ := strings.Cut(filepath.Base(name), ".pcap")
		t.Run(base, func(t *testing.T) {
			out := build(t, name, Options{})
			l := load(t, out)
			var text bytes.Buffer
			if err := l.Header.Text(&text); err != nil {
				t.Fatal(err)
			}
			golden(t, base+".txt", text.Bytes())
			l.counts(t)
			l.defined(t)
			l.arguments(t)
			l.results(t)
			l.content(t)
			l.identity(t)
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	name = filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want := readFile(t, name); !bytes.Equal(got, want) {
		t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
	}
}

// counts checks the summary against the lines.
func (l *loaded) counts(t *testing.T) {
	t.Helper()
	s := l.Header.Summary
	if n := len(l.ops) + len(l.skips); n != s.Transactions {
		t.Errorf("%d ops and skips for %d transactions", n, s.Transactions)
	}
	var got plan.Counts
	edges := map[plan.DepKind]int{}
	for _, o := range l.ops {
		got.Add(o.Class)
		for _, d := range o.Deps {
			edges[d.Kind]++
		}
		if len(o.Reasons) == 0 != (o.Class == plan.Exact) {
			t.Errorf("op %d is %s for the reasons %q", o.ID, o.Class, o.Reasons)
		}
	}
	for _, x := range l.skips {
		if x.Class == plan.Impossible {
			got.Impossible++
		}
	}
	prepared, created := 0, 0
	for i := range l.Objects {
		switch l.Objects[i].Origin {
		case plan.Before:
			prepared++
		case plan.Created:
			created++
		}
	}
	if prepared != s.Prepared || created != s.Created {
		t.Errorf("%d objects prepared and %d created, the summary says %d and %d", prepared, created, s.Prepared, s.Created)
	}
	if got != s.Ops {
		t.Errorf("classes %+v, the summary says %+v", got, s.Ops)
	}
	for k, n := range edges {
		if s.Edges[k] != n {
			t.Errorf("%d edges of kind %s, the summary says %d", n, k, s.Edges[k])
		}
	}
}

// defined checks that whatever an op uses exists by then: prepared, or made by an op that it
// waits for.
func (l *loaded) defined(t *testing.T) {
	t.Helper()
	created := func(o *plan.Op, object int) {
		x := &l.Objects[object-1]
		switch x.Origin {
		case plan.Before, plan.Above, plan.Stale:
		case plan.Created:
			if x.CreatedBy > o.ID || x.CreatedBy < 1 {
				t.Errorf("op %d uses object %d, which op %d creates", o.ID, object, x.CreatedBy)
			} else if x.CreatedBy < o.ID && !l.reaches(o.ID, x.CreatedBy) {
				t.Errorf("op %d does not wait for op %d, which creates object %d", o.ID, x.CreatedBy, object)
			}
		default:
			t.Errorf("object %d has the origin %q", object, x.Origin)
		}
	}
	by := func(o *plan.Op, what string, id, definedBy int) {
		if definedBy >= o.ID {
			t.Errorf("op %d uses %s %d, which op %d defines", o.ID, what, id, definedBy)
		} else if definedBy > 0 && !l.reaches(o.ID, definedBy) {
			t.Errorf("op %d does not wait for op %d, which defines %s %d", o.ID, definedBy, what, id)
		}
	}
	for _, o := range l.ops {
		last := 0
		for _, d := range o.Deps {
			if d.Op < last || d.Op >= o.ID {
				t.Errorf("op %d: dependencies %v", o.ID, o.Deps)
			}
			last = d.Op
		}
		each(o, func(f *plan.Field) {
			switch f.Kind {
			case plan.FieldHandle:
				created(o, f.Ref)
			case plan.FieldState:
				by(o, "state", f.Ref, l.States[f.Ref-1].DefinedBy)
			case plan.FieldClient:
				by(o, "client", f.Ref, l.Clients[f.Ref-1].DefinedBy)
			case plan.FieldSession:
				by(o, "session", f.Ref, l.Sessions[f.Ref-1].DefinedBy)
			}
		})
	}
	bases := map[string]bool{}
	for i := range l.Objects {
		o := &l.Objects[i]
		if o.Base {
			if bases[o.Name] {
				t.Errorf("two bases are called %q", o.Name)
			}
			bases[o.Name] = true
			if o.Parent != 0 {
				t.Errorf("base %d lies in %d", o.ID, o.Parent)
			}
		}
		if o.Origin == plan.Before && !o.Base {
			if o.Parent == 0 || o.Name == "" && o.NameBytes == nil {
				t.Errorf("object %d is to be prepared and has no place", o.ID)
			} else if p := &l.Objects[o.Parent-1]; p.Origin != plan.Before {
				t.Errorf("object %d is to be prepared in %d, which is %s", o.ID, p.ID, p.Origin)
			}
		}
		for _, e := range o.Content {
			if e.Offset+e.Length > o.Size {
				t.Errorf("object %d: content to %d, size %d", o.ID, e.Offset+e.Length, o.Size)
			}
		}
	}
	// One base is the directory given to the executor; several lie below it. Handles
	// that are stale need none.
	if slices.ContainsFunc(l.Objects, func(o plan.Object) bool { return o.Origin != plan.Stale }) && (len(bases) == 0 || len(bases) == 1 != bases[""]) {
		t.Errorf("bases %v", bases)
	}
}

// asCaptured is a Resolver that makes values up, and takes handles and data
// from the capture.
type asCaptured struct {
	l    *loaded
	data []byte
}

func (r *asCaptured) Append(dst []byte, _ *plan.Op, f *plan.Field) ([]byte, error) {
	switch f.Kind {
	case plan.FieldHandle:
		h, err := hex.DecodeString(r.l.Objects[f.Ref-1].Handle)
		return xdr.AppendOpaque(dst, h), err
	case plan.FieldName:
		return xdr.AppendOpaque(dst, f.Opaque()), nil
	case plan.FieldOwnerID:
		return xdr.AppendOpaque(dst, []byte("owner")), nil
	case plan.FieldCallback:
		return xdr.AppendOpaque(xdr.AppendOpaque(dst, []byte("tcp")), []byte("192.0.2.2.3.4")), nil
	case plan.FieldState, plan.FieldSession:
		return append(dst, make([]byte, 16)...), nil
	case plan.FieldClient, plan.FieldVerifier, plan.FieldConfirm, plan.FieldCookie, plan.FieldCookieVerf, plan.FieldCtime:
		return append(dst, make([]byte, 8)...), nil
	case plan.FieldCreateSeq, plan.FieldSequence, plan.FieldSlot, plan.FieldHighest, plan.FieldSeqid:
		return append(dst, make([]byte, 4)...), nil
	case plan.FieldLockHost:
		return xdr.AppendOpaque(dst, []byte(r.l.Owners[f.Ref-1].Host)), nil
	case plan.FieldLockOwner:
		return xdr.AppendOpaque(dst, r.l.Owners[f.Ref-1].Bytes), nil
	case plan.FieldSvid:
		return xdr.AppendUint32(dst, uint32(r.l.Owners[f.Ref-1].Svid)), nil
	}
	return dst, errors.New("what is " + string(f.Kind))
}

func (r *asCaptured) Data(_ *plan.Op, f *plan.Field) ([]byte, error) {
	p := f.Data
	switch {
	case p.Text != nil:
		return p.Text, nil
	case p.Source == plan.Captured:
		if p.At > int64(len(r.data)) || int64(p.Length) > int64(len(r.data))-p.At {
			return nil, errors.New("data beyond the side file")
		}
		return r.data[p.At : p.At+int64(p.Length)], nil
	}
	b := make([]byte, p.Length)
	plan.FillPattern(b, p.Object, p.Offset)
	return b, nil
}

// arguments makes sure that every op can be encoded, and that what comes out
// is a call of its procedure.
func (l *loaded) arguments(t *testing.T) {
	t.Helper()
	res := &asCaptured{l: l}
	if name := plan.DataName(l.name, &l.Header); name != "" {
		res.data = readFile(t, name)
	}
	header := make([]byte, 40)
	for _, o := range l.ops {
		stream, items, err := o.AppendArgs(append([]byte(nil), header...), nil, res)
		if err != nil {
			t.Errorf("op %d: %v", o.ID, err)
			continue
		}
		m := transport.Message{Stream: stream, Items: items}
		whole := m.AppendWhole(nil)
		p := nfs.Lookup(o.Program, o.Version).Procedure(o.Procedure)
		args := p.NewArgs()
		var r xdr.Reader
		r.Reset(whole[len(header):], len(whole)-len(header))
		args.Decode(&r)
		if r.Err() != nil || r.Remaining() != 0 {
			t.Errorf("op %d, %s: %v, %d bytes left", o.ID, o.What, r.Err(), r.Remaining())
		}
		// In chunks, as a responder finds them.
		var reduced []xdr.Reduced
		for i := range items {
			reduced = append(reduced, xdr.Reduced{Position: items[i].Position, Length: uint32(len(items[i].Data)+3) &^ 3})
		}
		r.Reset(stream[len(header):], len(stream)-len(header))
		r.StartAt(uint32(len(header)))
		r.ReduceCall(reduced)
		args.Decode(&r)
		if r.Err() != nil || r.Remaining() != 0 {
			t.Errorf("op %d, %s, reduced: %v, %d bytes left", o.ID, o.What, r.Err(), r.Remaining())
		}
		each(o, func(f *plan.Field) {
			if f.Kind != plan.FieldData {
				return
			}
			b, err := res.Data(o, f)
			if err != nil || f.Data.Hash != "" && f.Data.Source == plan.Captured && plan.HashData(b) != f.Data.Hash {
				t.Errorf("op %d: the data are not those of the capture: %v", o.ID, err)
			}
		})
	}
}

// results makes sure that the captured results can be read again.
func (l *loaded) results(t *testing.T) {
	t.Helper()
	for _, o := range l.ops {
		if o.Expect == nil || o.Expect.Results == nil {
			continue
		}
		p := nfs.Lookup(o.Program, o.Version).Procedure(o.Procedure)
		m := p.NewResult()
		var r xdr.Reader
		r.Reset(o.Expect.Results, len(o.Expect.Results))
		r.ReduceReply(o.Expect.Reduced(nil))
		m.Decode(&r)
		if r.Err() != nil || r.Remaining() != 0 {
			t.Errorf("op %d, %s: %v, %d bytes left", o.ID, o.What, r.Err(), r.Remaining())
		}
		if s, ok := m.(xdr.Status); ok {
			if code, _ := s.StatusCode(); code != o.Expect.Status {
				t.Errorf("op %d: status %d, want %d", o.ID, code, o.Expect.Status)
			}
		}
	}
}

// content plays reads and writes through a model of the files, and compares
// what each READ returned with what it ought to have returned.
func (l *loaded) content(t *testing.T) {
	t.Helper()
	if strings.Contains(l.Header.Sources[0], "snaplen") {
		return // the data are not in the capture
	}
	var side []byte
	if name := plan.DataName(l.name, &l.Header); name != "" {
		side = readFile(t, name)
	}
	files := map[int][]byte{}
	changed := map[int]bool{}
	for i := range l.Objects {
		o := &l.Objects[i]
		if o.Type != "file" || o.Size > 1<<24 {
			continue
		}
		b := make([]byte, o.Size)
		for _, e := range o.Content {
			copy(b[e.Offset:], side[e.At:e.At+int64(e.Length)])
		}
		files[o.ID] = b
		for _, n := range o.Notes {
			changed[o.ID] = changed[o.ID] || n.Foreign()
		}
	}
	for _, o := range l.ops {
		object := 0
		var write *plan.Payload
		plain := true
		each(o, func(f *plan.Field) {
			switch f.Kind {
			case plan.FieldHandle:
				if object == 0 {
					object = f.Ref
				}
			case plan.FieldData:
				write = f.Data
			}
		})
		if o.Compound != nil {
			for i := range o.Compound.Ops {
				switch o.Compound.Ops[i].Name {
				case "SETATTR", "ALLOCATE", "DEALLOCATE", "COPY", "CLONE":
					plain = false
				}
			}
		} else if o.Procedure == 2 || o.Procedure == 8 {
			plain = false
		}
		if !plain {
			each(o, func(f *plan.Field) {
				if f.Kind == plan.FieldHandle {
					changed[f.Ref] = true
				}
			})
		}
		if write != nil && write.Text == nil && o.Expect != nil && o.Expect.Status == 0 {
			b := files[object]
			if n := write.Offset + uint64(write.Length); n > uint64(len(b)) && n < 1<<24 {
				b = append(b, make([]byte, n-uint64(len(b)))...)
			}
			copy(b[write.Offset:], side[write.At:write.At+int64(write.Length)])
			files[object] = b
		}
		if o.Expect == nil || changed[object] {
			continue
		}
		for _, d := range o.Expect.Data {
			if d.Text != nil {
				continue
			}
			b := files[object]
			from := min(d.Offset, uint64(len(b)))
			to := min(d.Offset+uint64(d.Length), uint64(len(b)))
			if plan.HashData(b[from:to]) != d.Hash {
				t.Errorf("op %d, %s: the files of the plan hold other bytes there (%d to %d of %d)", o.ID, o.What, from, to, len(b))
			}
		}
	}
}

// identity reads a plan and writes it again.
func (l *loaded) identity(t *testing.T) {
	t.Helper()
	var out bytes.Buffer
	w := plan.NewWriter(&out)
	if err := w.Tables(l.Tables); err != nil {
		t.Fatal(err)
	}
	ops, skips := l.ops, l.skips
	for _, isOp := range l.isOp {
		var err error
		if isOp {
			err, ops = w.Op(ops[0]), ops[1:]
		} else {
			err, skips = w.Skip(skips[0]), skips[1:]
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), l.text) {
		t.Error("a plan that is read and written is another one")
	}
}
