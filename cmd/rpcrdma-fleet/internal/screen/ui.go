package screen

import (
	"fmt"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"
	"github.com/mattn/go-runewidth"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/live"
	"github.com/rpcrdma/toolkit/internal/units"
)

// UI is the screen: the list of taps, and one tap in detail. It implements tea.Model.
type UI struct {
	Fleet *live.Fleet // used by the goroutine of the program only
	By    live.Order
	Now   func() time.Time

	width, height int
	selected      string // name of a tap; empty: the first of the list, whichever that is
	detail        bool
	top           int // first line of the detail that is shown
	help          bool
	filter        string
	typing        bool
	notes         []noted
	shown         []*live.Tap
}

// Arrived are messages of the stream.
type Arrived []live.Message

// Note is something to say.
type Note string

type noted struct {
	text string
	at   time.Time
}

// Limits of notes on the screen.
const (
	maxNotes = 3
	noteTime = 20 * time.Second
)

type tick struct{}

func ticking() tea.Cmd { return tea.Tick(time.Second, func(time.Time) tea.Msg { return tick{} }) }

// Init implements tea.Model.
func (u *UI) Init() tea.Cmd { return ticking() }

// Update implements tea.Model.
func (u *UI) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	switch m := m.(type) {
	case tea.WindowSizeMsg:
		u.width, u.height = m.Width, m.Height
	case Arrived:
		for _, x := range m {
			u.Fleet.Add(x)
		}
	case Note:
		u.notes = append(u.notes, noted{text.SafeString(string(m)), u.Now()})
	case tick:
		u.list()
		return u, ticking()
	case tea.KeyMsg:
		if u.typing {
			u.typed(m)
			break
		}
		quit := u.key(m.String())
		u.list()
		return u, quit
	}
	u.list()
	return u, nil
}

// forget removes notes that were shown long enough.
func (u *UI) forget() {
	for len(u.notes) > maxNotes || len(u.notes) > 0 && u.Now().Sub(u.notes[0].at) > noteTime {
		u.notes = u.notes[1:]
	}
}

func (u *UI) typed(m tea.KeyMsg) {
	switch m.Type {
	case tea.KeyEnter:
		u.typing = false
	case tea.KeyEsc, tea.KeyCtrlC:
		u.typing, u.filter = false, ""
	case tea.KeyBackspace:
		if r := []rune(u.filter); len(r) > 0 {
			u.filter = string(r[:len(r)-1])
		}
	case tea.KeyRunes, tea.KeySpace:
		u.filter += string(m.Runes)
	}
}

func (u *UI) key(k string) tea.Cmd {
	if u.help {
		u.help = false
		return nil
	}
	switch k {
	case "q", "ctrl+c":
		return tea.Quit
	case "?", "h":
		u.help = true
	case "/":
		u.typing = !u.detail
	case "s":
		u.By = (u.By + 1) % live.NumOrders
	case "S":
		u.By = (u.By + live.NumOrders - 1) % live.NumOrders
	case "enter", "right", "l":
		if len(u.shown) > 0 {
			u.selected = u.shown[u.place()].Name
			u.detail, u.top = true, 0
		}
	case "esc", "left", "backspace":
		if !u.detail {
			u.filter = ""
		}
		u.detail = false
	case "up", "k":
		u.move(-1)
	case "down", "j":
		u.move(1)
	case "pgup":
		u.move(-max(u.height-6, 1))
	case "pgdown", " ":
		u.move(max(u.height-6, 1))
	case "home", "g":
		u.move(-1 << 30)
	case "end", "G":
		u.move(1 << 30)
	}
	return nil
}

func (u *UI) move(n int) {
	if u.detail {
		u.top = max(u.top+n, 0) // View limits it
		return
	}
	if len(u.shown) > 0 {
		at := min(max(u.place()+n, 0), len(u.shown)-1)
		u.selected = u.shown[at].Name
	}
}

// place is that of the selected tap in the list.
func (u *UI) place() int {
	for i, t := range u.shown {
		if t.Name == u.selected {
			return i
		}
	}
	return 0
}

// list determines which taps are shown.
func (u *UI) list() {
	u.forget()
	u.shown = u.shown[:0]
	for _, t := range u.Fleet.Taps(u.By, u.Now()) {
		if strings.Contains(strings.ToLower(t.Name), strings.ToLower(u.filter)) {
			u.shown = append(u.shown, t)
		}
	}
}

var (
	bold     = lipgloss.NewStyle().Bold(true)
	reversed = lipgloss.NewStyle().Reverse(true)
	alarming = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Color("1"))
)

const keys = "enter: one tap  esc: back  s/S: order  /: search  ?: help  q: quit"

var help = []string{
	"Taps, the slowest first. Each line is the latest interval of a tap.",
	"",
	"  up, down, pgup, pgdown, home, end   move",
	"  enter                               one tap: operations, slowest transactions, connections, clients, files",
	"  esc                                 back to the list; in the list, end the search",
	"  s, S                                next, previous order",
	"  /                                   show taps whose names have this text",
	"  q                                   quit",
	"",
	"  AGE      time since the latest summary came; SILENT if three are missing",
	"  RESENT   packets sent again, LOST packets that the tap's system dropped",
	"  MISSING  summaries of the tap's agent that have not come",
	"  P50, P99 of all taps together are upper ends of bands of half an octave",
	"",
	"Any key goes back.",
}

// View implements tea.Model.
func (u *UI) View() string {
	if u.width < 1 || u.height < 1 {
		return ""
	}
	now := u.Now()
	var lines []string
	put := func(style *lipgloss.Style, s string) {
		s = runewidth.Truncate(s, u.width, "…")
		if style != nil {
			s = style.Render(s)
		}
		lines = append(lines, s)
	}
	if u.help {
		for _, l := range help {
			put(nil, l)
		}
		return u.fit(lines, "")
	}
	for i, l := range head(u.Fleet, now) {
		switch {
		case strings.HasPrefix(l, "INCOMPLETE") || strings.Contains(l, "ALARM"):
			put(&alarming, l)
		case i == 0:
			put(&bold, l)
		default:
			put(nil, l)
		}
	}
	for _, n := range u.notes {
		put(&alarming, n.text)
	}
	if t := u.Fleet.Tap(u.selected); u.detail && t != nil {
		var body []string
		body = append(body, (&section{title: t.Name, header: tapHeader, right: tapRight, rows: [][]string{tapRow(t, now)}}).lines()[2:]...)
		body = append(body, "", "P99 of the last "+units.Plural(len(t.History), "interval")+":  "+spark(t.History))
		for _, x := range sections(t) {
			if len(x.rows) > 0 {
				body = append(body, x.lines()...)
			}
		}
		room := max(u.height-len(lines)-1, 1)
		u.top = min(u.top, max(len(body)-room, 0))
		for _, l := range body[u.top:min(u.top+room, len(body))] {
			put(nil, l)
		}
		return u.fit(lines, fmt.Sprintf("%s  lines %d to %d of %d", keys, u.top+1, min(u.top+room, len(body)), len(body)))
	}
	if len(u.shown) == 0 {
		put(nil, "")
		if u.filter == "" {
			put(nil, "Waiting for summaries. Agents send them: rpcrdma-fleet agent.")
		} else {
			put(nil, "No tap has this in its name.")
		}
		return u.fit(lines, u.foot())
	}
	room := max(u.height-len(lines)-2, 1)
	at := u.place()
	first := max(min(at-room/2, len(u.shown)-room), 0)
	last := min(first+room, len(u.shown))
	x := section{header: tapHeader, right: tapRight}
	for _, t := range u.shown[first:last] {
		x.rows = append(x.rows, tapRow(t, now))
	}
	for i, l := range x.lines()[2:] {
		switch {
		case i == 0:
			put(&bold, l)
		case first+i-1 == at:
			put(&reversed, l+strings.Repeat(" ", max(u.width-runewidth.StringWidth(l), 0)))
		case strings.Contains(l, "ALARM") || strings.Contains(l, "SILENT"):
			put(&alarming, l)
		default:
			put(nil, l)
		}
	}
	return u.fit(lines, u.foot())
}

func (u *UI) foot() string {
	s := keys + "  order: " + u.By.String()
	if u.typing || u.filter != "" {
		s = "/" + text.SafeString(u.filter) + "  " + s
	}
	return s
}

// fit makes the lines fill the screen, with one at its bottom.
func (u *UI) fit(lines []string, foot string) string {
	if len(lines) > u.height-1 {
		lines = lines[:max(u.height-1, 0)]
	}
	for len(lines) < u.height-1 {
		lines = append(lines, "")
	}
	return strings.Join(append(lines, runewidth.Truncate(foot, u.width, "…")), "\n")
}

var bars = []rune(" ▁▂▃▄▅▆▇█")

// spark draws the P99 over time, up to its maximum.
func spark(list []live.Sample) string {
	var most int64
	for i := range list {
		most = max(most, list[i].P99)
	}
	if most == 0 {
		return "no transactions"
	}
	var b strings.Builder
	for i := range list {
		b.WriteRune(bars[int(float64(list[i].P99)/float64(most)*float64(len(bars)-1)+0.5)])
	}
	return b.String() + "  " + units.DurationCell(most)
}

// Notef makes a Note.
func Notef(format string, args ...any) Note { return Note(fmt.Sprintf(format, args...)) }
