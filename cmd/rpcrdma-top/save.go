package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/rpcrdma/toolkit/analyze/blame"
	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/analyze/filter"
	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/analyze/split"
	"github.com/rpcrdma/toolkit/analyze/window"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/outfile"
	"github.com/rpcrdma/toolkit/internal/units"
)

// selection is what to write: the packets of one transaction, of whole connections, or of the transactions that a filter
// lets pass; or the text of the screen.
type selection struct {
	what        string // for messages
	stem        string // of the name of the file
	xid         uint32
	frame       uint64 // first packet of the transaction; 0: it is not one
	connections []int
	match       *filter.Filter
	screen      string
}

// saver writes the packets of a selection: from the files, which it reads again, or from what was kept of a capture.
type saver struct {
	files  *outfile.Files
	again  func() (capture.Reader, error) // nil: it cannot be read again
	taps   func() []capture.Tap           // of a capture
	kept   *keeper                        // of a capture; nil: nothing is
	live   bool
	dir    string // that a confined program may write to; empty: any
	keys   *cli.Keys
	decode decode.Options
	names  int
	window int
	lean   int // bytes for what the filter needs beyond transactions
	slots  int // bytes of what is remembered of sessions

	mu      sync.Mutex
	cancel  context.CancelFunc // of the file that is being written
	working sync.WaitGroup
}

// newSaver makes a saver; memory is divided with the screens.
func newSaver(o *options, files *outfile.Files, src *source, kept *keeper, keys *cli.Keys) *saver {
	s := &saver{files: files, again: src.again, kept: kept, live: src.live, keys: keys}
	if t, ok := src.Reader.(capture.Tapper); ok {
		s.taps = t.Taps
	}
	if src.live {
		s.dir = o.saveDir()
	}
	s.decode.SkipICRC = o.noICRC
	s.decode.Memory = o.memory.Decoder() / 2
	s.names = o.memory.Names() / 2
	s.window = o.memory.Scale(window.DefaultBytes / 2)
	s.lean = o.memory.Scale(fabric.DefaultMemory / 2)
	s.slots = o.memory.Scale(session.DefaultMemory / 2)
	return s
}

// impossible says why nothing can be written; empty if it can.
func (s *saver) impossible() string {
	switch {
	case s == nil:
		return "nothing can be written from here"
	case s.live && s.kept == nil:
		return "packets that are captured are gone once they are decoded: start with --keep 64M to hold the latest"
	case !s.live && s.again == nil:
		return "this input cannot be read again, so its packets cannot be written: read it from a file"
	}
	return ""
}

// written says what became of a file.
type written struct {
	text string
	err  error
}

// start begins to write a file, beside the screen.
func (s *saver) start(x selection, name string) (tea.Cmd, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		return nil, errors.New("a file is still being written: Esc gives it up")
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.working.Add(1)
	return func() tea.Msg {
		defer s.working.Done()
		write := s.write
		if x.screen != "" {
			write = s.writeScreen
		}
		text, err := write(ctx, &x, name)
		cancel()
		s.mu.Lock()
		s.cancel = nil
		s.mu.Unlock()
		return written{text, err}
	}, nil
}

// stop gives up the file that is being written, if there is one.
func (s *saver) stop() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel == nil {
		return false
	}
	s.cancel()
	return true
}

// end gives up the file that is being written, and waits until nothing of it is left.
func (s *saver) end() {
	if s.stop() {
		s.working.Wait()
	}
}

var errGivenUp = errors.New("given up; nothing was written")

// reader opens the packets once more.
func (s *saver) reader(x *selection) (capture.Reader, error) {
	if s.live {
		return s.kept.copy(x.connections), nil
	}
	return s.again()
}

// writeScreen writes the text of the screen.
func (s *saver) writeScreen(_ context.Context, x *selection, name string) (string, error) {
	out, err := s.files.Create(name)
	if err != nil {
		return "", err
	}
	defer out.Forget()
	defer out.Discard()
	if _, err := io.WriteString(out, x.screen); err != nil {
		return "", err
	}
	return "the screen is in " + name, out.Commit()
}

// write writes the packets of a selection. The file gets its name at the end; until then, and after an error, what was
// there before is as it was.
func (s *saver) write(ctx context.Context, x *selection, name string) (string, error) {
	r, err := s.reader(x)
	if err != nil {
		return "", err
	}
	defer r.Close()
	out, err := s.files.Create(name)
	if err != nil {
		return "", err
	}
	defer out.Forget() // it may be written once more
	defer out.Discard()
	taps := s.taps
	if t, ok := r.(capture.Tapper); ok {
		taps = t.Taps
	}
	if s.live && len(x.connections) > 0 {
		return s.all(ctx, r, out, taps)
	}
	found := false
	opt := split.Options{
		By: split.One, Taps: taps, Application: "rpcrdma-top " + cli.Version(), Window: s.window,
		Open: func(split.Name, bool) (io.WriteCloser, error) { return unclosed{out}, nil },
	}
	switch {
	case x.frame != 0:
		opt.Match = func(v *rpc.View) bool {
			is := v.Tx.XID == x.xid && v.Tx.First().Number == x.frame
			found = found || is
			return is
		}
	case len(x.connections) > 0:
		opt.Only = func(n int) bool { return slices.Contains(x.connections, n) }
	default:
		opt.Match = x.match.Match
	}
	sp := split.New(opt)
	if s.keys != nil {
		sp.Unwrap(s.keys.Again().Contexts)
	}
	sp.LimitNames(s.names)
	dec := s.decode
	sp.Options(&dec)
	if x.match.Blame() {
		s.blame(&dec)
	}
	d := decode.New(dec, sp.Transaction)
	var b capture.Batch
	for err == nil && sp.Err() == nil && !found {
		if ctx.Err() != nil {
			return "", errGivenUp
		}
		if err = r.Read(&b); err == nil {
			d.Batch(&b)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	d.Flush()
	st, werr := sp.Close()
	if err := errors.Join(werr, err); err != nil {
		return "", err
	}
	return s.done(out, &st, x)
}

// all writes all packets of a reader.
func (s *saver) all(ctx context.Context, r capture.Reader, out *outfile.File, taps func() []capture.Tap) (string, error) {
	w := capture.NewWriter(out, capture.WriterOptions{Taps: taps, Application: "rpcrdma-top " + cli.Version()})
	st := split.Stats{}
	for p, err := range capture.Packets(r) {
		if err == nil {
			err = w.Write(p)
		}
		if err == nil && ctx.Err() != nil {
			err = errGivenUp
		}
		if err != nil {
			return "", err
		}
		st.Kept++
	}
	if err := w.Flush(); err != nil {
		return "", err
	}
	return s.done(out, &st, nil)
}

// done gives the file its name, and says what is in it.
func (s *saver) done(out *outfile.File, st *split.Stats, x *selection) (string, error) {
	if st.Kept == 0 {
		if s.live {
			return "", errors.New("none of its packets is held any more: --keep holds the latest")
		}
		return "", errors.New("no packet belongs to it; nothing was written")
	}
	if err := out.Commit(); err != nil {
		return "", err
	}
	msg := units.Plural(st.Kept+st.Setup, "packet") + " written to " + out.Name()
	if x != nil && x.frame == 0 && len(x.connections) == 0 {
		msg = units.Plural(st.Chosen, "transaction") + ", " + msg
	}
	switch {
	case st.Lost > 0:
		msg += fmt.Sprintf("; %s missing, they left memory too early", units.Plural(st.Lost, "packet"))
	case s.live:
		msg += ", of those that are held"
	}
	return msg, nil
}

// blame lets the decoder find out what fields of the filter need.
func (s *saver) blame(opt *decode.Options) {
	b := blame.Lean(s.lean)
	opt.Observe(b.Recorder.Observer())
	slots := session.New(nil)
	slots.Live()
	slots.Limit(s.slots)
	opt.Observe(slots.Observer())
	opt.Transactions.Ended = func(tx *transaction.Transaction) {
		b.Ended(tx)
		slots.Ended(tx)
	}
}

// unclosed is a file that its maker ends.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// path is where a file of this name goes, or why it cannot.
func (s *saver) path(name string) (string, error) {
	if s.dir == "" {
		return name, nil
	}
	// Nothing can be written anywhere else after privileges were given up.
	if filepath.Base(name) == name {
		return name, nil // it is the working directory
	}
	abs, err := filepath.Abs(name)
	if err == nil && filepath.Dir(abs) == s.dir {
		return abs, nil
	}
	return "", fmt.Errorf("while capturing, files are written to %s only: give a name without a folder", s.dir)
}

// suggest is a name that no file has yet.
func (s *saver) suggest(stem, extension string) string {
	stem = safeStem(stem)
	for n := 1; n < 1000; n++ {
		name := stem + extension
		if n > 1 {
			name = stem + "-" + strconv.Itoa(n) + extension
		}
		at, err := s.path(name)
		if err != nil {
			return name
		}
		if _, err := os.Lstat(at); errors.Is(err, os.ErrNotExist) {
			return name
		}
	}
	return stem + extension
}

// safeStem makes a file name of what peers may have named.
func safeStem(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, s)
	s = strings.Trim(s, ".-")
	return "rpcrdma-" + s[:min(len(s), 60)]
}

// selected is what the cursor is on.
func (u *ui) selected() (selection, error) {
	if u.detail {
		d := u.detailOf()
		if d == nil || d.Row.Serial != u.serial || d.Row.Frame == 0 {
			return selection{}, errors.New("it is not known yet")
		}
		return ofTransaction(d.Row.XID, d.Row.Frame), nil
	}
	rows := u.rows()
	if len(rows) == 0 {
		return selection{}, errors.New("there is nothing to choose in this view")
	}
	u.follow(rows)
	id := rows[u.at[u.view].cursor].id
	switch u.view {
	case transactions:
		for i := range u.snap.Rows {
			if x := &u.snap.Rows[i]; strconv.FormatUint(x.Serial, 10) == id {
				return ofTransaction(x.XID, x.Frame), nil
			}
		}
		return selection{}, errors.New("it is no longer listed")
	case connections, wire:
		n, err := strconv.Atoi(id)
		return selection{what: "connection " + id, stem: "connection-" + id, connections: []int{n}}, err
	case sessions:
		x := u.sessionAt(id)
		if x == nil || len(x.Connections) == 0 {
			return selection{}, errors.New("its connections are not known")
		}
		s := selection{what: "the connections of " + sessionName(x), stem: "session-" + sessionName(x)}
		for _, c := range x.Connections {
			s.connections = append(s.connections, c.ID)
		}
		return s, nil
	}
	expr, err := u.exprOf(id)
	if err != nil {
		return selection{}, err
	}
	s := selection{what: expr, stem: id}
	if u.view == files {
		s.stem = filepath.Base(id)
	}
	if u.snap.Filter != "" { // the row counts only what passes it
		expr = "(" + u.snap.Filter + ") && " + expr
		s.what = expr
	}
	if s.match, err = filter.Compile(expr); err != nil {
		return selection{}, errNoFilter
	}
	return s, nil
}

func ofTransaction(xid uint32, frame uint64) selection {
	return selection{what: "XID " + units.XID(xid), stem: fmt.Sprintf("%08x", xid), xid: xid, frame: frame}
}

// askFile asks for the name of the file that the packets of the selection go to.
func (u *ui) askFile() tea.Cmd {
	if why := u.saver.impossible(); why != "" {
		u.message = why
		return nil
	}
	x, err := u.selected()
	if err != nil {
		u.message = err.Error()
		return nil
	}
	u.saving, u.replace = x, ""
	return u.ask(promptFile, u.saver.suggest(x.stem, ".pcapng"))
}

// askScreen asks for the name of the file for the text of the screen.
func (u *ui) askScreen() tea.Cmd {
	switch {
	case u.saver == nil:
		u.message = u.saver.impossible()
		return nil
	case u.saver.live && u.saver.kept == nil:
		u.message = "while capturing, files can be written only if the program was started with --keep"
		return nil
	}
	u.saving, u.replace = selection{what: "the screen", screen: u.plainScreen()}, ""
	return u.ask(promptFile, u.saver.suggest("screen", ".txt"))
}

// plainScreen is the screen as text without colors.
func (u *ui) plainScreen() string {
	st := u.st
	u.st = &styles{dots: st.dots}
	defer func() { u.st = st }()
	var b strings.Builder
	for l := range strings.Lines(u.View() + "\n") {
		b.WriteString(strings.TrimRight(l, " \n"))
		b.WriteByte('\n')
	}
	return b.String()
}

// save writes the file whose name was typed.
func (u *ui) save(name string) tea.Cmd {
	wrong := func(why string) tea.Cmd {
		u.wrong = why
		u.fitInput()
		return nil
	}
	if name == "" {
		return wrong("type the name of a file")
	}
	at, err := u.saver.path(name)
	if err != nil {
		return wrong(err.Error())
	}
	var conflict *outfile.Conflict
	if err := u.saver.files.Check(at); errors.As(err, &conflict) {
		return wrong("this file is read: it cannot be written")
	} else if err != nil {
		return wrong(err.Error())
	}
	if _, err := os.Lstat(at); err == nil && u.replace != at {
		u.replace = at
		return wrong("it exists; Enter again replaces it")
	}
	cmd, err := u.saver.start(u.saving, at)
	if err != nil {
		return wrong(err.Error())
	}
	u.typing, u.wrong = false, ""
	u.input.Blur()
	if u.message = "writing the packets of " + u.saving.what; u.saving.screen != "" {
		u.message = "writing the screen"
	}
	return cmd
}
