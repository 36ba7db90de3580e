package main

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/mattn/go-runewidth"

	"github.com/rpcrdma/toolkit/analyze/filter"
	"github.com/rpcrdma/toolkit/analyze/monitor"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

const samples = "../../samples"

// script is a feeder that a test drives: it does at once what is asked for.
type script struct {
	t       testing.TB
	m       *monitor.Model
	list    []capture.Packet
	snap    *monitor.Snapshot
	notice  chan struct{}
	speed   float64
	paused  bool
	skipped int
	hold    bool
	filter  string
	watched uint64
	jumped  int64
	page    *uint64
}

func newScript(t testing.TB, sample string, opt monitor.Options) *script {
	t.Helper()
	return newScriptOf(t, filepath.Join(samples, sample), opt)
}

func newScriptOf(t testing.TB, name string, opt monitor.Options) *script {
	t.Helper()
	s := &script{t: t, m: monitor.New(opt), notice: make(chan struct{}, 1), speed: 1}
	r, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		var b capture.Batch
		if err := r.Read(&b); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		s.list = append(s.list, b.Packets...)
	}
	s.publish()
	return s
}

// run feeds packets up to a number, and ends the input after the last one.
func (s *script) run(to uint64) {
	for len(s.list) > 0 && s.list[0].Number <= to {
		s.m.Packets(s.list[:1])
		s.list = s.list[1:]
	}
	if len(s.list) == 0 {
		s.m.Flush(nil)
	}
	s.publish()
}

func (s *script) publish() {
	s.snap = s.m.Snapshot()
	s.snap.Speed, s.snap.Paced, s.snap.Paused = s.speed, true, s.paused
}

func (s *script) Latest() *monitor.Snapshot { return s.snap }
func (s *script) Notice() <-chan struct{}   { return s.notice }
func (s *script) SetFilter(f *filter.Filter) {
	s.filter = ""
	if f != nil {
		s.filter = f.String()
	}
	s.m.SetFilter(f)
	s.publish()
}
func (s *script) SetInterval(d time.Duration) { s.m.SetInterval(d); s.publish() }
func (s *script) SetSpeed(f float64)          { s.speed = f; s.publish() }
func (s *script) Pause(on bool)               { s.paused = on; s.publish() }
func (s *script) Skip()                       { s.skipped++ }
func (s *script) Hold(on bool)                { s.hold = on; s.m.Hold(on) }
func (s *script) Watch(serial uint64, width int, plain bool) {
	s.watched = serial
	s.m.Watch(serial, width, plain)
	s.publish()
}

func (s *script) Jump(t int64)      { s.jumped = t }
func (s *script) Page(from *uint64) { s.page = from }

// screen is a program without a terminal.
type screen struct {
	t testing.TB
	*ui
	s    *script
	quit bool
}

func newScreen(t testing.TB, s *script, width, height int) *screen {
	x := &screen{t: t, ui: newUI(s, "bulk.pcap", newStyles(io.Discard, false, &theme{colors: defaultInks}), &unicodeGlyphs), s: s}
	x.send(tea.WindowSizeMsg{Width: width, Height: height})
	return x
}

func (x *screen) send(msgs ...tea.Msg) {
	for _, m := range msgs {
		_, cmd := x.Update(m)
		if cmd == nil {
			continue
		}
		if _, ok := m.(tea.KeyMsg); !ok || x.typing {
			continue // waits for a snapshot, or for the cursor to blink
		}
		if _, ok := cmd().(tea.QuitMsg); ok {
			x.quit = true
		}
	}
	x.check()
}

// frame shows the newest snapshot.
func (x *screen) frame() { x.send(notice{}) }

var named = map[string]tea.KeyType{
	"enter": tea.KeyEnter, "esc": tea.KeyEsc, "tab": tea.KeyTab, "shift+tab": tea.KeyShiftTab, "up": tea.KeyUp, "down": tea.KeyDown,
	"pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp, "home": tea.KeyHome, "end": tea.KeyEnd, "left": tea.KeyLeft, "right": tea.KeyRight,
	"backspace": tea.KeyBackspace, "ctrl+c": tea.KeyCtrlC, "f1": tea.KeyF1,
}

// keys presses keys: names, or text as it is typed.
func (x *screen) press(keys ...string) {
	for _, k := range keys {
		if t, ok := named[k]; ok {
			x.send(tea.KeyMsg{Type: t})
		} else if k == " " {
			x.send(tea.KeyMsg{Type: tea.KeySpace, Runes: []rune{' '}})
		} else {
			x.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(k)})
		}
		x.frame()
	}
}

// check wants a screen that fills the window exactly.
func (x *screen) check() {
	x.t.Helper()
	if x.width < 1 || x.height < 1 {
		if x.View() != "" {
			x.t.Fatalf("%q in no window", x.View())
		}
		return
	}
	lines := strings.Split(x.View(), "\n")
	if len(lines) != x.height {
		x.t.Fatalf("%d lines in a window of %d:\n%s", len(lines), x.height, x.View())
	}
	for i, l := range lines {
		if w := runewidth.StringWidth(strip(l)); w > x.width {
			x.t.Fatalf("line %d is %d columns wide, of %d: %q", i, w, x.width, l)
		}
	}
}

// strip leaves escape sequences out.
func strip(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == 0x1b {
			for i < len(s) && s[i] != 'm' {
				i++
			}
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func (x *screen) golden(name string) {
	x.t.Helper()
	var b bytes.Buffer
	for _, l := range strings.Split(x.View(), "\n") {
		b.WriteString(strings.TrimRight(strip(l), " "))
		b.WriteByte('\n')
	}
	compare(x.t, filepath.Join("testdata", "screens", name), b.Bytes())
}

func compare(t testing.TB, golden string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: differs\n%s\nwant\n%s", golden, got, want)
	}
}

func (x *screen) has(want ...string) {
	x.t.Helper()
	for _, w := range want {
		if !strings.Contains(strip(x.View()), w) {
			x.t.Errorf("%q is not on the screen:\n%s", w, x.View())
		}
	}
}

// Packets of a sample in the middle of its traffic.
const (
	bulk   = "rocev2-nfs3-bulk.pcap.zst"
	midway = 1500
)

// TestScreens compares all screens, in the middle of the traffic and at its
// end.
func TestScreens(t *testing.T) {
	for _, size := range []struct {
		name          string
		width, height int
	}{{"80x24", 80, 24}, {"160x50", 160, 50}} {
		s := newScript(t, bulk, monitor.Options{Interval: 100 * time.Millisecond})
		x := newScreen(t, s, size.width, size.height)
		x.golden("start." + size.name)
		s.run(midway)
		x.frame()
		for v, name := range []string{"overview", "transactions", "connections", "files", "clients", "latency"} {
			x.press(string(rune('1' + v)))
			x.golden(name + "." + size.name)
		}
		x.press("2", "enter")
		x.golden("open." + size.name)
		x.press("esc", "?")
		x.golden("help." + size.name)
		x.press("?", "/", "op == READ && lat")
		x.golden("typing." + size.name)
		x.press("esc")
		s.run(1 << 40)
		x.press("1")
		x.golden("end." + size.name)
		x.press("2", "<", "<", "home", "enter") // by age
		x.golden("ended." + size.name)
	}
}

// TestBatch compares the tables of a whole capture.
func TestBatch(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	var out, diag bytes.Buffer
	args := []string{"--batch", "-r", filepath.Join(samples, "rocev2-nfs41-recall.pcap")}
	if code := run(args, &cli.Streams{In: strings.NewReader(""), Out: &out, Err: &diag}); code != cli.ExitOK || diag.Len() > 0 {
		t.Fatalf("exit code %d\n%s", code, &diag)
	}
	compare(t, filepath.Join("testdata", "screens", "batch"), out.Bytes())
}

// TestStuckScreen shows a server that falls silent in the middle of its work.
func TestStuckScreen(t *testing.T) {
	s := newScript(t, "rocev2-nfs41-mixed-load.pcap.zst", monitor.Options{})
	s.list = slices.DeleteFunc(s.list, func(p capture.Packet) bool {
		const source = 14 + 12 // of the IPv4 header in the Ethernet frame
		return p.Number >= 2500 && p.Data[12] == 8 && p.Data[source+3] == 1
	})
	x := newScreen(t, s, 80, 24)
	s.run(2600)
	s.m.Advance(s.snap.Time + 2e9)
	s.publish()
	x.press("2")
	x.golden("stuck.80x24")
	x.press("enter")
	x.has("stuck in ")
	x.press("esc", "1")
	x.has(" stuck")
	x.press("3")
	x.has("▸!")
}

// TestTyping makes sure that what is typed into the filter is no command.
func TestTyping(t *testing.T) {
	s := newScript(t, bulk, monitor.Options{})
	x := newScreen(t, s, 80, 24)
	s.run(midway)
	x.frame()
	x.press("/")
	// Each of these does something elsewhere.
	x.press(strings.Split("q?123456trpnjkhlGg<>[]+-= ", "")...)
	if x.quit || x.help || x.view != overview || x.frozen || x.paused() || s.skipped > 0 || s.speed != 1 || x.totals || x.detail {
		t.Fatalf("a typed letter was taken for a command")
	}
	if got := x.input.Value(); got != "q?123456trpnjkhlGg<>[]+-= " {
		t.Errorf("the filter is %q", got)
	}
	x.press("enter")
	if !x.typing || s.filter != "" || x.wrong == "" {
		t.Error("a wrong expression was taken")
	}
	x.has("expected")
	x.press("esc")
	if x.typing || x.quit {
		t.Error("Esc did not end it")
	}
	// All at once, as a terminal delivers fast typing.
	x.press("/op == READ")
	x.press("enter")
	if s.filter != "op == READ" || x.typing || x.view != overview {
		t.Errorf("filter %q", s.filter)
	}
	x.has("filter: op == READ")
	// Pasted into the filter, and elsewhere.
	x.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("q123"), Paste: true})
	if x.quit || x.view != overview {
		t.Error("pasted text was taken for commands")
	}
	x.press("/")
	if x.input.Value() != "op == READ" {
		t.Errorf("the filter begins with %q", x.input.Value())
	}
	for range 20 {
		x.press("backspace")
	}
	x.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("status != ok || q"), Paste: true})
	if x.input.Value() != "status != ok || q" {
		t.Errorf("pasted: %q", x.input.Value())
	}
	x.press("esc")
	if f, err := filter.Compile("xid == 1"); err != nil {
		t.Fatal(err)
	} else {
		s.SetFilter(f)
	}
	x.frame()
	x.has("no transaction matches the filter")
	x.press("3", ">")
	x.has("▼ID")
	x.press("ctrl+c")
}

func (x *screen) paused() bool { return x.s.paused }

// TestKeys tries the commands.
func TestKeys(t *testing.T) {
	s := newScript(t, bulk, monitor.Options{})
	x := newScreen(t, s, 100, 30)
	s.run(midway)
	x.frame()
	for range views {
		x.press("tab")
	}
	if x.view != overview {
		t.Errorf("view %d after all tabs", x.view)
	}
	x.press("shift+tab")
	if x.view != causes {
		t.Errorf("view %d", x.view)
	}
	// Freezing keeps the screen as it is.
	x.press("2", " ")
	x.has("FROZEN")
	if !s.hold {
		t.Error("what is on the screen is not held")
	}
	before := x.View()
	s.run(midway + 300)
	x.frame()
	if x.View() != before {
		t.Error("the frozen screen has changed")
	}
	x.press("enter")
	x.has("XID 0x", "Send Only")
	x.press("esc")
	x.press(" ")
	if s.hold || x.View() == before {
		t.Error("the screen is still frozen")
	}
	// Sorting: each column, both ways.
	for range len(x.tableOf(transactions).columns) + 1 {
		x.press(">", "r", "r")
	}
	if x.at[transactions].sort != -1 {
		t.Errorf("sorted by %d after all columns", x.at[transactions].sort)
	}
	x.press(">")
	rows := x.rows()
	for i := 1; i < len(rows); i++ {
		if rows[i-1].cells[0].key < rows[i].cells[0].key {
			t.Fatal("not sorted by age")
		}
	}
	x.press("r")
	if rows = x.rows(); rows[0].cells[0].key > rows[len(rows)-1].cells[0].key {
		t.Error("not reversed")
	}
	// Moving.
	x.press("end")
	if x.at[transactions].cursor != len(rows)-1 {
		t.Errorf("cursor %d of %d", x.at[transactions].cursor, len(rows))
	}
	x.press("home", "down", "j", "pgdown", "pgup", "k")
	if x.at[transactions].cursor != 0 && x.at[transactions].cursor != 1 {
		t.Errorf("cursor %d", x.at[transactions].cursor)
	}
	// Looking into a transaction, and going on from there.
	x.press("enter")
	if !x.detail || s.watched == 0 {
		t.Fatal("not opened")
	}
	x.has("XID 0x", "server 192.0.2.")
	x.press("pgdown", "end", "right", "left", "home")
	x.send(tea.WindowSizeMsg{Width: 60, Height: 20})
	x.press("esc")
	if x.detail || s.watched != 0 {
		t.Error("not closed")
	}
	x.press("enter", "3")
	if x.detail || x.view != connections {
		t.Error("another view leaves the transaction open")
	}
	// Interval, speed, pause.
	x.press("+")
	if s.snap.Interval != 2*time.Second {
		t.Errorf("interval %v", s.snap.Interval)
	}
	x.press("-", "-", "-")
	if s.snap.Interval != 200*time.Millisecond {
		t.Errorf("interval %v", s.snap.Interval)
	}
	x.press("]]]")
	if s.speed != 8 {
		t.Errorf("speed %v", s.speed)
	}
	x.press("[")
	x.press("p")
	if s.speed != 4 || !s.paused {
		t.Errorf("speed %v, paused %v", s.speed, s.paused)
	}
	x.has("PAUSED")
	x.press("n", "p")
	if s.skipped != 1 || s.paused {
		t.Error("not gone on")
	}
	// What is under the cursor becomes a filter.
	for v, want := range map[string]string{"1": "operation_group == ", "3": "connection == ", "4": "file.path == ", "5": "client == "} {
		x.press(v, "home", "enter")
		if !strings.HasPrefix(s.filter, want) || x.view != transactions {
			t.Errorf("view %s: filter %q; %s", v, s.filter, x.message)
		}
		x.press("esc")
		if s.filter != "" {
			t.Errorf("Esc leaves the filter %q", s.filter)
		}
	}
	x.press("q")
	if !x.quit {
		t.Error("q does not quit")
	}
}

// TestMouse clicks.
func TestMouse(t *testing.T) {
	s := newScript(t, bulk, monitor.Options{})
	x := newScreen(t, s, 100, 30)
	s.run(midway)
	x.frame()
	click := func(cx, cy int) {
		x.send(tea.MouseMsg{X: cx, Y: cy, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress})
		x.frame()
	}
	click(16, 1)
	if x.view != transactions {
		t.Fatalf("view %d", x.view)
	}
	click(6, 3)
	if x.at[transactions].sort != 0 {
		t.Errorf("sorted by %d", x.at[transactions].sort)
	}
	click(6, 3)
	if !x.at[transactions].turn {
		t.Error("not reversed")
	}
	click(20, 6)
	if x.at[transactions].cursor != 2 {
		t.Errorf("cursor %d", x.at[transactions].cursor)
	}
	click(20, 6)
	if !x.detail {
		t.Error("a second click does not open it")
	}
	x.press("esc")
	x.send(tea.MouseMsg{Button: tea.MouseButtonWheelDown, Action: tea.MouseActionPress})
	if x.at[transactions].cursor != 5 {
		t.Errorf("cursor %d", x.at[transactions].cursor)
	}
	// Nowhere.
	for cy := range 32 {
		for cx := 0; cx < 102; cx += 7 {
			click(cx, cy)
			x.press("esc")
		}
	}
}

// TestSizes draws all screens in all small windows: none may panic or spill.
func TestSizes(t *testing.T) {
	s := newScript(t, bulk, monitor.Options{Interval: 100 * time.Millisecond})
	x := newScreen(t, s, 80, 24)
	s.run(midway)
	x.frame()
	for _, g := range []*glyphs{&unicodeGlyphs, &asciiGlyphs} {
		for _, color := range []bool{false, true} {
			if testing.Short() && color != (g == &unicodeGlyphs) {
				continue
			}
			x.g = g
			x.st = newStyles(io.Discard, color, &theme{colors: defaultInks})
			for v := range views {
				x.press(string(rune('1' + v)))
				for _, size := range [][2]int{{40, 10}, {1, 1}, {2, 2}, {10, 3}, {20, 4}, {39, 7}, {80, 24}, {300, 100}, {81, 5}} {
					x.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
					x.press("?", "?", "/", "op == ", "esc", "down")
					if v == transactions {
						x.press("enter", "down", "esc")
					}
				}
			}
		}
	}
	x.send(tea.WindowSizeMsg{Width: 40, Height: 10})
	x.press("2")
	for _, l := range strings.Split(strip(x.View()), "\n") {
		for _, r := range l {
			if r > 126 {
				t.Fatalf("%q in ASCII: %q", r, l)
			}
		}
	}
	x.send(tea.WindowSizeMsg{Width: 0, Height: 0})
}

// TestProgram runs the program itself, with a feed, keys and an output.
func TestProgram(t *testing.T) {
	r, err := capture.Open([]string{filepath.Join(samples, bulk)}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	feed := monitor.Start(monitor.New(monitor.Options{}), r, monitor.FeedOptions{})
	if err := feed.Wait(); err != nil {
		t.Fatal(err)
	}
	defer feed.Stop()
	var out bytes.Buffer
	u := newUI(feed, "bulk.pcap", newStyles(&out, false, &theme{colors: defaultInks}), &unicodeGlyphs)
	in, keys := io.Pipe()
	go func() {
		for _, k := range []string{"2", "\r", "\x1b", "/", "op == READ", "\r", "q"} {
			if _, err := io.WriteString(keys, k); err != nil {
				return
			}
		}
	}()
	p := tea.NewProgram(u, tea.WithInput(in), tea.WithOutput(&out), tea.WithoutSignals())
	go p.Send(tea.WindowSizeMsg{Width: 80, Height: 24})
	if _, err := p.Run(); err != nil {
		t.Fatal(err)
	}
	if out.Len() == 0 {
		t.Error("nothing was drawn")
	}
}

// TestDocScreens wants the screens in the documentation to be those that the program draws: each block begins
// with the name of a golden file. With -update, they are pasted again.
func TestDocScreens(t *testing.T) {
	const doc = "../../docs/rpcrdma-top.md"
	b, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- screen ", "```\n"
	text, n := string(b), 0
	var out strings.Builder
	for {
		before, rest, ok := strings.Cut(text, begin)
		out.WriteString(before)
		if !ok {
			break
		}
		name, rest, ok1 := strings.Cut(rest, " -->\n```text\n")
		screen, rest, ok2 := strings.Cut(rest, end)
		if !ok1 || !ok2 {
			t.Fatal("a screen without end")
		}
		golden, err := os.ReadFile(filepath.Join("testdata", "screens", name))
		if err != nil {
			t.Fatal(err)
		}
		if screen != string(golden) && !*update {
			t.Errorf("the screen %s is another one now; go test -update pastes it", name)
		}
		out.WriteString(begin + name + " -->\n```text\n" + string(golden) + end)
		text = rest
		n++
	}
	if n < 2 {
		t.Errorf("%d screens", n)
	}
	if *update {
		if err := os.WriteFile(doc, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
