package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/textinput"
	tea "github.com/charmbracelet/bubbletea"

	"github.com/rpcrdma/toolkit/analyze/filter"
	"github.com/rpcrdma/toolkit/analyze/monitor"
	"github.com/rpcrdma/toolkit/internal/units"
)

// feeder is what the screens want of a monitor.Feed.
type feeder interface {
	Latest() *monitor.Snapshot
	Notice() <-chan struct{}
	SetFilter(*filter.Filter)
	SetInterval(time.Duration)
	SetSpeed(float64)
	Pause(bool)
	Skip()
	Hold(bool)
	Watch(serial uint64, width int, plain bool)
	Jump(t int64)
	Page(from *uint64)
}

// place is where a reader is in one view.
type place struct {
	id     string // of the row under the cursor; empty: none yet
	cursor int
	top    int // first row that is shown
	sort   int // column; negative: as it comes
	turn   bool
}

// ui is the program: what is shown, and what keys do. It only draws snapshots.
type ui struct {
	drawing
	feed   feeder
	source string

	snap          *monitor.Snapshot
	width, height int
	view          view
	at            [views]place
	layout        arrangements
	chooser       chooser
	config        *config   // nil: none
	saver         *saver    // nil: nothing can be written
	saving        selection // what the file that is asked for is to hold
	replace       string    // the file that may be replaced
	terminal      io.Writer // for the clipboard and the bell; nil: there is none
	mouseOn       bool
	bell          bool
	ringer        ringer
	frozen        bool
	waiting       bool // a filter has been set since
	whyTop        int  // first line of the view of causes
	whyHit        int  // line that was searched for; -1: none
	totals        bool
	chosenTotals  bool // by the user: the end of the input does not switch
	help          bool
	helpTop       int
	helpHit       int // line that was searched for; -1: none

	typing  bool // on the last line
	prompt  prompt
	found   string   // what was searched for
	pages   []uint64 // first transactions of the pages before this one
	input   textinput.Model
	wrong   string // with the filter
	message string

	detail    bool
	serial    uint64
	detailTop int
	detailHit int // line that was searched for; -1: none
	// Requests that the snapshot does not reflect yet.
	wantSpeed    float64
	wantInterval time.Duration
	speeding     bool
	detailLeft   int

	// Where things are on the screen, for the mouse.
	tableRow int // of the first row of the table; 0: none
	table    *table
	cut      string // which part of the table is shown; empty: all of it
	columns  []int
	widths   []int
}

// prompt says what is typed on the last line.
type prompt uint8

const (
	promptFilter prompt = iota
	promptSearch
	promptTime
	promptFile
)

var promptNames = [...]string{" filter: ", " search: ", " go to: ", " write to: "}

func (p prompt) label() string { return promptNames[p] }

// notice says that there is a new snapshot.
type notice struct{}

// byTime is the index of the column with the time spent, in several tables.
const byTime = 6

// defaultSort is the column that a view is sorted by.
func defaultSort(v view) int {
	switch v {
	case overview, files, clients:
		return byTime
	}
	return -1
}

func newUI(feed feeder, source string, st *styles, g *glyphs) *ui {
	u := &ui{drawing: drawing{g: g, st: st}, feed: feed, source: source, width: 80, height: 24}
	st.dots = g.dots
	u.arrange(arrangements{})
	u.input = textinput.New()
	u.input.Prompt = ""
	u.input.CharLimit = 1000
	u.snap = feed.Latest()
	return u
}

// arrange takes over columns and orders.
func (u *ui) arrange(a arrangements) {
	u.layout = a
	for v := range views {
		u.at[v].sort, u.at[v].turn = a.by(v, defaultSort(v))
	}
}

// Init implements tea.Model.
func (u *ui) Init() tea.Cmd { return u.wait() }

// wait waits for the next snapshot.
func (u *ui) wait() tea.Cmd {
	return func() tea.Msg {
		<-u.feed.Notice()
		return notice{}
	}
}

// Update implements tea.Model.
func (u *ui) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case notice:
		if !u.frozen {
			u.snap = u.feed.Latest()
			if u.snap.Speed == u.wantSpeed {
				u.speeding = false
			}
			if u.snap.Interval == u.wantInterval {
				u.wantInterval = 0
			}
			if u.snap.Note != "" {
				u.message = u.snap.Note
			}
			if u.snap.Ended && !u.chosenTotals {
				u.totals = true
			}
			if u.ringer.news(u.snap) && u.bell {
				return u, tea.Batch(u.wait(), u.raw("\a"))
			}
		}
		return u, u.wait()
	case said:
		u.message = string(msg)
	case written:
		if u.message = msg.text; msg.err != nil {
			u.message = "not written: " + msg.err.Error()
		}
	case tea.WindowSizeMsg:
		u.width, u.height = msg.Width, msg.Height
		u.fitInput()
		if u.detail {
			u.watch()
		}
	case tea.MouseMsg:
		return u.mouse(msg)
	case tea.KeyMsg:
		return u.keys(msg)
	}
	return u, nil
}

// keys handles keys. Fast typing or pasted text arrives as one message: each letter is its own key, and
// everything after "/" is part of the filter.
func (u *ui) keys(msg tea.KeyMsg) (tea.Model, tea.Cmd) {
	if msg.Type != tea.KeyRunes || u.typing {
		return u.key(msg)
	}
	if msg.Paste {
		return u, nil // no command was meant
	}
	var cmds []tea.Cmd
	for i, r := range msg.Runes {
		if u.typing {
			_, cmd := u.key(tea.KeyMsg{Type: tea.KeyRunes, Runes: msg.Runes[i:]})
			cmds = append(cmds, cmd)
			break
		}
		_, cmd := u.key(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}, Alt: msg.Alt})
		cmds = append(cmds, cmd)
	}
	return u, tea.Batch(cmds...)
}

func (u *ui) key(msg tea.KeyMsg) (tea.Model, tea.Cmd) {
	key := msg.String()
	if key == "ctrl+c" {
		return u, tea.Quit
	}
	if u.typing {
		return u.typed(msg)
	}
	u.message = ""
	if u.help {
		switch key {
		case "?", "esc", "q", "enter":
			u.help = false
		case "f", "F":
			return u, u.seek(key)
		default:
			u.helpTop = scroll(key, u.helpTop, u.height-2)
		}
		return u, nil
	}
	if u.chooser.on {
		u.chooseKey(key)
		return u, nil
	}
	if u.detail {
		switch key {
		case "esc", "q", "backspace", "enter":
			u.close()
			return u, nil
		case "left", "h":
			u.detailLeft = max(u.detailLeft-8, 0)
			return u, nil
		case "right", "l":
			u.detailLeft += 8
			return u, nil
		case "j", "down", "k", "up", "pgdown", "pgup", "home", "end", "g", "G", "ctrl+d", "ctrl+u":
			u.detailTop = scroll(key, u.detailTop, u.height-3)
			return u, nil
		}
	}
	return u.command(key)
}

// command does what a key stands for everywhere.
func (u *ui) command(key string) (tea.Model, tea.Cmd) {
	p := &u.at[u.view]
	switch key {
	case "q":
		return u, tea.Quit
	case "?", "f1":
		u.help, u.helpTop, u.helpHit = true, 0, -1
	case "1", "2", "3", "4", "5", "6", "7", "8", "9":
		u.show(view(key[0] - '1'))
	case "tab":
		u.show((u.view + 1) % views)
	case "shift+tab":
		u.show((u.view + views - 1) % views)
	case "/":
		return u, u.ask(promptFilter, u.snap.Filter)
	case "f", "F", "@", "{", "}", "a":
		return u, u.seek(key)
	case "y", "w", "W", "c", "esc":
		return u, u.act(key)
	case " ":
		u.freeze()
	case "p":
		u.pause()
	case "n":
		if u.snap.Paced {
			u.feed.Skip()
		}
	case "[", "]":
		u.speed(key == "]")
	case "+", "=", "-", "_":
		u.interval(key == "+" || key == "=")
	case "t":
		u.totals, u.chosenTotals = !u.totals, true
	case "<", ",", ">", ".", "left", "right":
		u.sort(key == ">" || key == "." || key == "right")
	case "r", "R":
		p.turn = !p.turn
	case "enter", "l":
		u.open()
	default:
		if u.view == causes {
			u.whyTop = scroll(key, u.whyTop, u.body()-1)
			break
		}
		n := len(u.rows())
		if u.turnPage(key, n) {
			break
		}
		p.cursor = min(max(scrollTo(key, p.cursor, max(u.body()-2, 1), n), 0), max(n-1, 0))
		if n > 0 {
			p.id = u.table.rows[p.cursor].id
		}
	}
	return u, nil
}

// act takes the keys that do something with the row under the cursor, and the one that undoes.
func (u *ui) act(key string) tea.Cmd {
	switch key {
	case "y":
		return u.yank()
	case "w":
		return u.askFile()
	case "W":
		return u.askScreen()
	case "c":
		u.choose()
	case "esc":
		if u.saver.stop() {
			break // the message comes with what became of it
		}
		if u.snap.Filter != "" || u.waiting {
			u.setFilter(nil)
			u.message = "filter off"
		}
	}
	return nil
}

func (u *ui) freeze() {
	u.frozen, u.waiting = !u.frozen, false
	u.feed.Hold(u.frozen)
	if !u.frozen {
		u.snap = u.feed.Latest()
	}
}

// setFilter sets or removes the filter. A frozen screen shows the effect later.
func (u *ui) setFilter(f *filter.Filter) {
	u.feed.SetFilter(f)
	u.waiting = u.frozen
}

func (u *ui) pause() {
	if u.snap.Paced && !u.snap.Ended {
		u.feed.Pause(!u.snap.Paused)
	} else {
		u.message = "only a replay can be paused; the space bar freezes the screen"
	}
}

// rows are the rows of the view as they are sorted now.
func (u *ui) rows() []row {
	u.table = u.tableOf(u.view)
	if u.table == nil {
		return nil
	}
	return u.table.rows
}

func (u *ui) show(v view) {
	if u.detail {
		u.close()
	}
	u.view = v
}

// scroll moves a text. Its end is unknown here; drawing limits the position.
func scroll(key string, top, page int) int { return max(scrollTo(key, top, page, 1<<30), 0) }

// scrollTo moves a place among n.
func scrollTo(key string, at, page, n int) int {
	switch key {
	case "j", "down":
		at++
	case "k", "up":
		at--
	case "pgdown", "ctrl+d", "ctrl+f":
		at += page
	case "pgup", "ctrl+u", "ctrl+b":
		at -= page
	case "home", "g":
		at = 0
	case "end", "G":
		at = n - 1
	}
	return at
}

// typed edits the filter.
func (u *ui) typed(msg tea.KeyMsg) (tea.Model, tea.Cmd) {
	switch msg.String() {
	case "esc":
		u.typing, u.wrong = false, ""
		u.input.Blur()
		return u, nil
	case "enter":
		if u.prompt != promptFilter {
			return u, u.answer(strings.TrimSpace(u.input.Value()))
		}
		expr := strings.TrimSpace(u.input.Value())
		if expr == "" {
			u.setFilter(nil)
			u.message = "filter off"
		} else {
			f, err := filter.Compile(expr)
			if err != nil {
				u.wrong = wrongFilter(err)
				u.fitInput()
				return u, nil
			}
			u.setFilter(f)
			u.message = "counted from now on: " + expr
			if u.snap.Ended {
				u.message = "decoded again: " + expr
			}
		}
		u.typing, u.wrong = false, ""
		u.input.Blur()
		return u, nil
	}
	var cmd tea.Cmd
	u.input, cmd = u.input.Update(msg)
	u.wrong = ""
	if expr := strings.TrimSpace(u.input.Value()); expr != "" && u.prompt == promptFilter {
		if _, err := filter.Compile(expr); err != nil {
			u.wrong = wrongFilter(err)
		}
	}
	u.fitInput()
	return u, cmd
}

// wrongFilter says what is wrong with a filter, in less than a line.
func wrongFilter(err error) string {
	var place *filter.Error
	switch {
	case !errors.As(err, &place) || !place.Unknown:
		return err.Error()
	case place.Hint != "":
		return "no field " + strconv.Quote(place.Found) + "; " + place.Hint
	}
	return "no field " + strconv.Quote(place.Found) + ": rpcrdma-dump --list-fields"
}

// fitInput gives the filter its room on the last line: all of it, or half if
// there is something wrong to be told.
func (u *ui) fitInput() {
	room := max(u.width-len(u.prompt.label())-1, 1)
	if u.wrong != "" && room >= 40 {
		room = max(min(len(u.input.Value())+1, room/2), 8)
	}
	u.input.Width = room
	u.input.SetCursor(u.input.Position()) // what is shown depends on the width
}

// sort selects the next or previous column; before the first one is the natural order of the rows.
func (u *ui) sort(next bool) {
	t := u.tableOf(u.view)
	if t == nil {
		return
	}
	p := &u.at[u.view]
	list := append([]int{-1}, t.wanted()...) // -1: as they come
	at := max(slices.Index(list, p.sort), 0)
	if next {
		at = (at + 1) % len(list)
	} else {
		at = (at + len(list) - 1) % len(list)
	}
	p.sort, p.turn = list[at], false
	u.message = "in the order in which they come"
	if p.sort >= 0 {
		u.message = "sorted by " + t.columns[p.sort].called()
	}
}

// intervals are what "+" and "-" go through.
var intervals = []time.Duration{
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second,
	10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 10 * time.Minute,
}

func (u *ui) interval(longer bool) {
	now := u.snap.Interval
	if u.wantInterval > 0 {
		now = u.wantInterval
	}
	to := now
	if longer {
		for i := len(intervals) - 1; i >= 0; i-- {
			if intervals[i] > now {
				to = intervals[i]
			}
		}
	} else {
		for _, d := range intervals {
			if d < now {
				to = d
			}
		}
	}
	if to == now {
		u.message = "no interval beyond " + now.String()
		return
	}
	if u.snap.Ended {
		u.message = "the input has ended: start again with --interval " + to.String()
		return
	}
	u.feed.SetInterval(to)
	u.wantInterval = to
	u.message = "interval " + to.String() + "; the history over time restarts"
}

func (u *ui) speed(faster bool) {
	s := u.snap
	if !s.Paced || s.Ended {
		u.message = "only a replay has a speed"
		return
	}
	to := s.Speed
	if u.speeding {
		to = u.wantSpeed
	}
	switch {
	case to == 0 && !faster:
		to = 1 << 14
	case to == 0:
	case faster:
		if to *= 2; to > 1<<14 {
			to = 0
		}
	default:
		to = max(to/2, 1.0/64)
	}
	u.feed.SetSpeed(to)
	u.wantSpeed, u.speeding = to, true
	u.message = "speed " + speedText(to)
}

func speedText(f float64) string {
	if f == 0 {
		return "max"
	}
	return "x" + strconv.FormatFloat(f, 'g', 4, 64)
}

// open inspects what is under the cursor.
func (u *ui) open() {
	switch u.view {
	case transactions:
		rows := u.rows()
		p := &u.at[u.view]
		if len(rows) == 0 {
			return
		}
		u.follow(rows)
		serial, err := strconv.ParseUint(rows[p.cursor].id, 10, 64)
		if err != nil {
			return
		}
		u.serial, u.detail, u.detailTop, u.detailLeft, u.detailHit = serial, true, 0, 0, -1
		u.watch()
	case heatmap, causes:
	default:
		u.narrow()
	}
}

// narrow shows the transactions of the row under the cursor, by means of a filter.
func (u *ui) narrow() {
	rows := u.rows()
	if len(rows) == 0 {
		return
	}
	u.follow(rows)
	expr, err := u.exprOf(rows[u.at[u.view].cursor].id)
	if err != nil {
		u.message = err.Error()
		return
	}
	f, err := filter.Compile(expr)
	if err != nil {
		u.message = errNoFilter.Error()
		return
	}
	u.setFilter(f)
	u.show(transactions)
	u.message = "only " + expr + "; Esc takes the filter off"
}

var (
	errNoFilter = errors.New("cannot make a filter from this")
	errHandle   = errors.New("its name is not known: look for its handle with the filter")
)

// exprOf is the filter for the transactions of a row of this view.
func (u *ui) exprOf(id string) (string, error) {
	switch u.view {
	case overview:
		if _, op, ok := strings.Cut(id, " "); ok && op != "?" {
			return "operation_group == " + op, nil
		}
	case connections, wire:
		return "connection == " + id, nil
	case sessions:
		if expr := u.ofSession(id); expr != "" {
			return expr, nil
		}
	case clients:
		return "client == " + id, nil
	case files:
		if strings.HasPrefix(id, "fh:") {
			return "", errHandle
		}
		return "file.path == " + strconv.Quote(id), nil
	}
	return "", errNoFilter
}

// yank copies what names the row under the cursor: the XID of a transaction, elsewhere the filter for its
// transactions.
func (u *ui) yank() tea.Cmd {
	x, err := u.selected()
	switch {
	case err != nil:
		u.message = err.Error()
		return nil
	case x.frame != 0:
		return u.copyText(units.XID(x.xid))
	}
	rows := u.rows()
	expr, err := u.exprOf(rows[u.at[u.view].cursor].id)
	if err != nil {
		u.message = err.Error()
		return nil
	}
	return u.copyText(expr)
}

// watch requests the transaction in full, as wide as the window.
func (u *ui) watch() { u.feed.Watch(u.serial, max(u.width, 20), u.g.ascii) }

// close goes back from a transaction to the list.
func (u *ui) close() {
	u.detail = false
	u.feed.Watch(0, 0, false)
}

// mouse takes clicks and the wheel.
func (u *ui) mouse(msg tea.MouseMsg) (tea.Model, tea.Cmd) {
	switch {
	case msg.Button == tea.MouseButtonWheelUp, msg.Button == tea.MouseButtonWheelDown:
		key := "up"
		if msg.Button == tea.MouseButtonWheelDown {
			key = "down"
		}
		for range 3 {
			u.key(tea.KeyMsg{Type: map[string]tea.KeyType{"up": tea.KeyUp, "down": tea.KeyDown}[key]})
		}
		return u, nil
	case msg.Action != tea.MouseActionPress || msg.Button != tea.MouseButtonLeft || u.typing || u.help || u.chooser.on:
		return u, nil
	}
	if msg.Y == 1 {
		if v, ok := u.tabAt(msg.X); ok {
			u.show(v)
		}
		return u, nil
	}
	if u.detail || u.table == nil || u.tableRow == 0 {
		return u, nil
	}
	p := &u.at[u.view]
	if msg.Y == u.tableRow-1 {
		if c := hit(u.columns, u.widths, markWidth, msg.X); c >= 0 {
			if p.sort == c {
				p.turn = !p.turn
			}
			p.sort = c
		}
		return u, nil
	}
	i := p.top + msg.Y - u.tableRow
	if i < p.top || i >= len(u.table.rows) || msg.Y >= u.height-1 {
		return u, nil
	}
	if p.cursor == i && p.id == u.table.rows[i].id {
		u.open()
		return u, nil
	}
	p.cursor, p.id = i, u.table.rows[i].id
	return u, nil
}

// title is the first line of the screen.
func (u *ui) title() string {
	s := u.snap
	state, t := "live", good
	switch {
	case u.waiting:
		state, t = "FROZEN; Space: see the filter", warn
	case u.frozen:
		state, t = "FROZEN", warn
	case s.Err != nil:
		state, t = "FAILED", bad
	case s.Ended:
		state, t = "end", accent
	case s.Paused:
		state, t = "PAUSED", warn
	case s.Again:
		state, t = "decoding", warn
	case s.Paced:
		state = "replay " + speedText(s.Speed)
	}
	clock := ""
	if s.Time != 0 {
		clock = time.Unix(0, s.Time).UTC().Format("15:04:05")
	}
	right := fmt.Sprintf("%s  %s  %s pkts ", clock, s.Interval, units.Count(s.Decoder.Packets))
	if s.HasNow && !s.Ended {
		right = fmt.Sprintf("%s  %s  %s pkts/s ", clock, s.Interval, strings.ReplaceAll(units.Rate(s.Rate(s.Packets)), "-", "0"))
	}
	alarm := ""
	if names := alarmText(s); names != "" {
		alarm = "  ALARM " + names
	}
	room := u.width - len("rpcrdma-top ") - len(state) - len(alarm) - 2 - len(right)
	name, nameTone := u.source, normal
	if s.Filter != "" && u.filterRoom() == 0 {
		name, nameTone = "filter: "+s.Filter, warn // what is filtered matters more than where it comes from
	}
	name = u.g.name(name, max(room, 3))
	left := []span{{"rpcrdma-top ", bold}, {name, nameTone}, {"  ", normal}, {state, t}, {alarm, bad}}
	used := len("rpcrdma-top ") + len([]rune(name)) + 2 + len(state) + len(alarm)
	if pad := u.width - used - len(right); pad > 0 {
		left = append(left, span{strings.Repeat(" ", pad), normal})
	} else {
		left = append(left, span{" ", normal})
	}
	return u.st.line(u.width, normal, append(left, span{u.g.plain(right), normal})...)
}

// tabs is the second line.
func (u *ui) tabs() string {
	var out []span
	for v := range views {
		t, s := dim, u.tab(v)
		if v == u.view {
			t = bold
		}
		out = append(out, span{s, t})
	}
	if room := u.filterRoom(); room > 0 {
		out = append(out, span{" filter: " + u.g.name(u.snap.Filter, room), warn})
	}
	return u.st.line(u.width, normal, out...)
}

// filterRoom returns the columns for the filter after the tabs; 0 if there are none, or no filter.
func (u *ui) filterRoom() int {
	used := len(" filter: ")
	for v := range views {
		used += len(u.tab(v))
	}
	if u.snap.Filter == "" || u.width-used < min(len(u.snap.Filter), 20) {
		return 0
	}
	return u.width - used
}

// tab returns the name of a view, in brackets if it is shown: in full, short, or only its number.
func (u *ui) tab(v view) string {
	for _, names := range [...]*[views]string{&viewNames, &shortNames} {
		all := 1 // tabs share the column between them
		for i := range views {
			all += len(names[i]) + len("1 ") + 1
		}
		if all <= u.width {
			return u.bracketed(v, names[v])
		}
	}
	name := ""
	if v == u.view {
		name = viewNames[v]
	}
	return u.bracketed(v, name)
}

// bracketed returns the tab of a view. The opening bracket takes the place of the space before the name, the closing one that of the
// space before the next tab.
func (u *ui) bracketed(v view, name string) string {
	before, after := " ", ""
	switch v {
	case u.view:
		before = "["
		if v == views-1 {
			after = "]"
		}
	case u.view + 1:
		before = "]"
	}
	return before + strings.TrimRight(fmt.Sprintf("%d %s", v+1, name), " ") + after
}

func (u *ui) tabAt(x int) (view, bool) {
	for v := range views {
		n := len(u.tab(v))
		if x < n {
			return v, x >= 0
		}
		x -= n
	}
	return 0, false
}

// body is how many lines lie between the tabs and the last line.
func (u *ui) body() int { return max(u.height-3, 0) }
