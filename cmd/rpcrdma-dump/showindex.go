package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/rpcrdma/toolkit/analyze/index"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/outfile"
)

// indexStep and indexWorth are those of an index.Maker. Tests change them.
var indexStep, indexWorth int64

// maxIndexed is how many bytes of output are kept until it is known that an index was right.
const maxIndexed = 64 << 20

// checkIndex refuses what an index does not go with.
func (o *showOptions) checkIndex(files []string) error {
	names := append(append([]string(nil), o.read...), files...)
	switch {
	case o.index == "":
		return nil
	case o.index == "-":
		return cli.Usagef("--index is a file")
	case len(o.ifaces) > 0 || o.follow:
		return cli.Usagef("--index is for a file that is complete, not for -i and --follow")
	case len(names) > 1 || len(names) == 1 && names[0] == "-":
		return cli.Usagef("--index is for one file")
	case o.span.Given():
		return cli.Usagef("--index is for a whole file: --since, --until and --last do not go with it")
	}
	return nil
}

// indexKey is the key that indexes are signed with.
func indexKey() ([]byte, error) {
	key, err := cli.Secret("rpcrdma-dump", "index.key")
	if err != nil {
		return nil, fmt.Errorf("--index: the key that an index is signed with: %w", err)
	}
	return key, nil
}

// indexed answers from an index. It returns nil if the whole capture has to be read; o.remake tells whether the
// index is to be made meanwhile.
func (o *showOptions) indexed(j *job, fresh func() *showing, out *output) (*showing, error) {
	if j.keys.Keytab() {
		return nil, cli.Usagef("--index does not go with a keytab (--keytab, KRB5_KTNAME): session keys are not written to a file")
	}
	if err := j.files.Check(o.index); err != nil {
		return nil, err
	}
	if compressed(j.in.names[0]) {
		return nil, cli.Usagef("--index is for a capture that is not compressed: %s would have to be decompressed from its start each time", j.in.names[0])
	}
	key, err := indexKey()
	if err != nil {
		return nil, err
	}
	switch info, err := os.Stat(o.index); {
	case errors.Is(err, fs.ErrNotExist):
		o.remake = true
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, cli.Usagef("%s is not a file", o.index)
	}
	f, err := os.Open(o.index)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	a := &answer{o: o, key: key}
	x, err := a.of(j, f, fresh)
	if err == nil {
		if !out.end(append(out.begin(), a.buf.Bytes()...)) {
			j.stop()
		}
		j.indexed = &a.whole
		return x, nil
	}
	if errors.Is(err, decode.ErrStateSettings) {
		j.notes.Printf("note: %s is not used: %v; remove it to have one made with these", o.index, err)
		return nil, nil
	}
	if errors.Is(err, index.ErrNotAnIndex) {
		return nil, cli.Usagef("%s is not an index, and will not be replaced by one", o.index)
	}
	o.remake = true
	j.notes.Printf("note: %s is not used: %v; it is made again", o.index, err)
	return nil, nil
}

// compressed reports whether a regular file is compressed.
func compressed(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [4]byte
	n, _ := f.ReadAt(head[:], 0)
	return bytes.HasPrefix(head[:n], []byte{0x1f, 0x8b}) || bytes.HasSuffix(head[:n], []byte{0x2a, 0x4d, 0x18}) || bytes.Equal(head[:n], []byte{0x28, 0xb5, 0x2f, 0xfd})
}

// answer is what an index gives.
type answer struct {
	o     *showOptions
	key   []byte
	buf   bytes.Buffer
	whole whole

	x       *index.Index
	starts  map[int]uint64 // transactions found, by segment
	emitted uint64
	last    uint64 // the transaction before, in the order in which they are emitted
	memory  int    // bytes of the transactions found
	err     error
}

// whole is what an index knows of the whole capture.
type whole struct {
	Outcome  outcome
	Problems []savedProblem
}

// savedProblem is a capture.Problem.
type savedProblem struct {
	Packet uint64
	Offset int64
	Text   string
	Err    string
}

func save(list []*capture.Problem) (out []savedProblem) {
	for _, p := range list {
		s := savedProblem{Packet: p.Packet, Offset: p.Offset, Text: p.Text}
		if p.Err != nil {
			s.Err = p.Err.Error()
		}
		out = append(out, s)
	}
	return out
}

// list are the problems of a file.
func (w *whole) list(file string) (list []*capture.Problem) {
	for _, s := range w.Problems {
		p := &capture.Problem{File: file, Packet: s.Packet, Offset: s.Offset, Text: s.Text}
		if s.Err != "" {
			p.Err = errors.New(s.Err)
		}
		list = append(list, p)
	}
	return list
}

// of makes the answer. Nothing of it is to be used after an error.
func (a *answer) of(j *job, f *os.File, fresh func() *showing) (*showing, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, index.ErrNotAnIndex
	}
	if a.x, err = index.Open(f, info.Size(), a.key); err != nil {
		return nil, err
	}
	file, err := os.Open(j.in.names[0])
	if err != nil {
		return nil, err
	}
	defer file.Close()
	id, err := index.Identify(file, a.key)
	if err == nil {
		err = a.x.Check(id)
	}
	if err == nil {
		err = a.x.Result(&a.whole)
	}
	if err != nil {
		return nil, err
	}
	var xids []uint32
	for _, w := range a.o.wanted {
		xids = append(xids, w.xids...)
	}
	runs, err := a.x.Find(xids...)
	if err != nil {
		return nil, err
	}
	show, keys := fresh(), j.keys.Again() // so that the whole capture can be read as if nothing had been
	show.view.Unwrap = keys.Contexts
	if len(runs) == 0 { // is it of this program at all?
		opt, parts := a.o.showDecoder()
		return show, a.x.Verify(decode.New(opt, func(*transaction.Transaction) {}), a.state(show, parts))
	}
	for i := range runs {
		if err := a.decode(&runs[i], show, file); err != nil {
			return nil, err
		}
	}
	if guarded(keys) {
		return nil, errGuarded
	}
	return show, nil
}

// errCapturedTwice means that a part of a capture does not tell which packets of it are copies.
var errCapturedTwice = errors.New("packets come more than once: which are copies is known of the whole capture only")

// errGuarded means that a part of a capture does not tell all.
var errGuarded = errors.New("some calls are protected by Kerberos: what is said of them needs the whole capture")

// guarded reports whether something would be said about Kerberos.
func guarded(k *cli.Keys) (found bool) {
	k.Notes(func(string, ...any) { found = true })
	return found
}

// state are the options of the state, with what is shown as a part of it.
func (a *answer) state(x *showing, parts []decode.StatePart) decode.StateOptions {
	return decode.StateOptions{Parts: append(parts, x.view.Names), Key: a.key}
}

// decode decodes a run.
func (a *answer) decode(r *index.Run, show *showing, file *os.File) error {
	a.starts, a.emitted = make(map[int]uint64), a.x.Emitted(r)
	show.view.Names = &rpc.Names{Limit: show.view.Names.Limit} // the state has those of then
	opt, parts := a.o.showDecoder()
	d := decode.New(opt, func(tx *transaction.Transaction) { a.transaction(tx, show) })
	err := a.x.Decode(r, d, a.state(show, parts), file, capture.Options{BatchSize: a.o.memory.Batch()})
	if err == nil {
		err = a.err
	}
	if err != nil {
		return err
	}
	for k, n := range r.Starts {
		if a.starts[k] != n {
			return errors.New("the capture has other transactions with this XID")
		}
	}
	if b := d.Memory(); b.Evicted() > 0 || a.memory > b.Limit()/8 {
		return errors.New("the packets of the transaction take too much memory")
	}
	return nil
}

// transaction takes one that was decoded.
func (a *answer) transaction(tx *transaction.Transaction, show *showing) {
	a.emitted++
	if a.err != nil {
		return
	}
	if show.o.wants(tx.XID) {
		a.memory += tx.Memory()
		a.starts[a.x.Start(tx)]++
		switch {
		case !tx.Traced():
			a.err = errors.New("a transaction began before the part of the capture that was decoded")
		case a.emitted <= a.last:
			a.err = errors.New("the transactions come in another order")
		}
		a.last = a.emitted
	}
	if show.transaction(tx) {
		a.buf.Write(show.append(a.buf.AvailableBuffer()))
		if a.buf.Len() > maxIndexed {
			a.err = errors.New("there is more to show than is kept until it is known to be right")
		}
	}
	show.view.Learn()
}

// making makes an index.
type making struct {
	*index.Maker
	f     *outfile.File
	file  *os.File
	name  string
	notes *cli.Problems
}

// making begins an index. Without one the capture is decoded nevertheless.
func (o *showOptions) making(j *job, x *showing, parts []decode.StatePart) *making {
	m := &making{name: o.index, notes: j.notes}
	key, err := indexKey()
	if err == nil {
		m.f, err = j.files.Create(o.index)
	}
	if err == nil {
		m.file, err = os.Open(j.in.names[0])
	}
	if err == nil {
		m.Maker, err = index.NewMaker(m.f, m.file, key, (&answer{key: key}).state(x, parts))
	}
	if err != nil {
		m.fail(err)
		return nil
	}
	m.Step, m.Worth = indexStep, indexWorth
	return m
}

// fail gives it up.
func (m *making) fail(err error) {
	m.notes.Printf("note: %s was not made: %v", m.name, err)
	m.discard()
}

func (m *making) discard() {
	if m.f != nil {
		m.f.Discard()
	}
	if m.file != nil {
		m.file.Close()
	}
}

// run decodes the whole capture.
func (m *making) run(j *job, progress bool) error {
	defer m.discard()
	defer j.interrupts()()
	if progress {
		defer showProgress(j.s.Err, j.in)()
	}
	if err := m.Run(j.d, j.in); err != nil {
		return err
	}
	if j.stopped || j.signal.Load() {
		return nil
	}
	list, total := j.in.Problems()
	w := whole{Problems: save(list), Outcome: outcome{
		Total: total, Stats: j.d.Stats(), Cut: j.in.cut.Load(), Account: j.d.Account(), Evicted: j.d.Orphans().Evicted,
		Malformed: j.d.Orphans().Malformed,
	}}
	var err error
	switch {
	case guarded(j.keys):
		err = errGuarded
	case j.in.duplicated():
		err = errCapturedTwice
	default:
		err = m.Finish(j.d, w)
	}
	if err == nil {
		err = m.f.Commit()
	}
	if err != nil {
		m.fail(err)
	}
	return nil
}

// finishShow is finish, with what an index knows.
func (j *job) finishShow(err, out error) error {
	switch {
	case j.d == nil && err != nil: // nothing was read
		return err
	case j.indexed == nil || out != nil || err != nil:
		return j.finish(err, out)
	}
	j.indexed.Outcome.print(j.notes, j.indexed.list(j.in.names[0]))
	if j.notes.Damaged() {
		return cli.ErrDamaged
	}
	return nil
}
