package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

// ask begins to read the last line.
func (u *ui) ask(p prompt, value string) tea.Cmd {
	u.typing, u.prompt, u.wrong = true, p, ""
	u.input.SetValue(value)
	u.input.CursorEnd()
	u.fitInput()
	return u.input.Focus()
}

// seek takes the keys that look for something.
func (u *ui) seek(key string) tea.Cmd {
	switch key {
	case "f":
		return u.ask(promptSearch, "")
	case "F":
		u.search(u.found)
	case "@":
		if u.snap.Paced {
			return u.ask(promptTime, "")
		}
		u.message = "what is captured now has no other time"
	case "{":
		u.jump(-10 * int64(u.snap.Interval))
	case "}":
		u.jump(10 * int64(u.snap.Interval))
	case "a":
		u.all()
	}
	return nil
}

// answer takes what was searched for, a time, or the name of a file.
func (u *ui) answer(s string) tea.Cmd {
	switch {
	case u.prompt == promptFile:
		return u.save(s)
	case u.prompt == promptTime && s != "":
		t, err := u.timeOf(s)
		if err != nil {
			u.wrong = err.Error()
			u.fitInput()
			return nil
		}
		u.jumpTo(t)
	}
	u.typing, u.wrong = false, ""
	u.input.Blur()
	if u.prompt == promptSearch {
		u.search(s)
	}
	return nil
}

// search goes to the next place with a text, in any case, and says which of how many it is: lines of the help
// or of an open transaction, else rows of the list.
func (u *ui) search(s string) {
	if s == "" {
		u.message = "nothing to search for: f asks for it"
		return
	}
	u.found = s
	want := strings.ToLower(s)
	var at, n, all int // the next hit; which one it is; how many there are
	switch {
	case u.help:
		if at, n, all = nextHit(u.helpText(), want, u.helpHit); n > 0 {
			u.helpTop, u.helpHit = at, at
		}
	case u.view == causes && !u.detail:
		if at, n, all = nextHit(u.whyText(u.snap, u.width), want, u.whyHit); n > 0 {
			u.whyTop, u.whyHit = at, at
		}
	case u.detail:
		if at, n, all = nextHit(u.detailText(), want, u.detailHit); n > 0 {
			u.detailTop, u.detailHit = at, at
		}
	default:
		rows := u.rows()
		u.follow(rows)
		p := &u.at[u.view]
		lines := make([]string, len(rows))
		for i := range rows {
			for j := range rows[i].cells {
				lines[i] += rows[i].cells[j].text + "\n" // which nobody can type
			}
		}
		if at, n, all = nextHit(lines, want, p.cursor); n > 0 {
			p.cursor, p.id = at, rows[at].id
		}
	}
	what := strconv.Quote(s)
	switch {
	case all == 0 && (u.help || u.detail || u.view == causes):
		u.message = "no line has " + what
	case all == 0:
		u.message = "no row has " + what
		if u.view == transactions && u.snap.Paged {
			u.message += " on this page"
		} else if u.table != nil && u.table.more > 0 {
			u.message += ", of those that are listed"
		}
	default:
		u.message = fmt.Sprintf("%d of %d with %s; F: the next", n, all, what)
	}
}

// nextHit finds the first line with a text after one line, from the top again if need be; the number of the
// hit, counted from 1; and how many there are.
func nextHit(lines []string, want string, after int) (at, n, all int) {
	first := -1
	at = -1
	for i, l := range lines {
		if !strings.Contains(strings.ToLower(l), want) {
			continue
		}
		all++
		if first < 0 {
			first = i
		}
		if at < 0 && i > after {
			at, n = i, all
		}
	}
	if at < 0 && first >= 0 {
		at, n = first, 1
	}
	return at, n, all
}

var errTime = errors.New("a time is 15:04:05, +10 or -10 from here, or seconds from the beginning")

// timeOf reads a time of the capture: of the day, from here, or from the
// beginning.
func (u *ui) timeOf(s string) (int64, error) {
	now, first := u.snap.Time, u.snap.First
	if now == 0 {
		return 0, errors.New("no packet has been read yet")
	}
	sign := int64(0)
	switch s[0] {
	case '+':
		sign = 1
	case '-':
		sign = -1
	}
	if sign != 0 {
		d, err := cli.ParseDuration(s[1:])
		if err != nil {
			return 0, errTime
		}
		return now + sign*int64(d), nil
	}
	if d, err := cli.ParseDuration(s); err == nil {
		return first + int64(d), nil
	}
	for _, layout := range [...]string{"15:04:05", "15:04"} {
		if t, err := time.Parse(layout, s); err == nil {
			midnight := time.Unix(0, first).UTC().Truncate(24 * time.Hour)
			x := midnight.Add(time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute + time.Duration(t.Second())*time.Second + time.Duration(t.Nanosecond()))
			if x.UnixNano() < first && now/int64(24*time.Hour) > first/int64(24*time.Hour) {
				x = x.Add(24 * time.Hour) // past midnight
			}
			return x.UnixNano(), nil
		}
	}
	return 0, errTime
}

// jump goes back or forth.
func (u *ui) jump(by int64) { u.jumpTo(u.snap.Time + by) }

func (u *ui) jumpTo(t int64) {
	s := u.snap
	switch {
	case !s.Paced:
		u.message = "what is captured now has no other time"
		return
	case s.Ended && t >= s.Time:
		u.message = "this is the end"
		return
	}
	t = max(t, s.First)
	u.pages = nil
	u.feed.Jump(t)
	u.chosenTotals, u.totals = true, false
	u.message = "to " + time.Unix(0, t).UTC().Format("15:04:05.000")
}

// all lists all transactions that have ended, or no longer does.
func (u *ui) all() {
	if u.view != transactions {
		u.show(transactions)
	}
	u.pages = nil
	u.at[transactions] = place{sort: -1}
	if u.snap.Paged {
		u.feed.Page(nil)
		return
	}
	u.feed.Page(new(uint64))
}

// turnPage goes to another page of all transactions, if a key moves beyond the
// first or the last row of this one.
func (u *ui) turnPage(key string, n int) bool {
	s, p := u.snap, &u.at[u.view]
	if u.view != transactions || !s.Paged || n == 0 {
		return false
	}
	next := s.PageFrom + uint64(n)
	switch to := scrollTo(key, p.cursor, 1, n); {
	case to >= n && next < s.PageAll:
		u.pages = append(u.pages, s.PageFrom)
		u.feed.Page(&next)
	case to < 0 && len(u.pages) > 0:
		last := len(u.pages) - 1
		from := u.pages[last]
		u.pages = u.pages[:last]
		u.feed.Page(&from)
	default:
		return false
	}
	*p = place{sort: p.sort, turn: p.turn}
	return true
}
