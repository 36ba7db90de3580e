package monitor

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/rpcrdma/toolkit/analyze/ladder"
	"github.com/rpcrdma/toolkit/analyze/text"
)

// sortEnded sorts the latest first.
func sortEnded(rows []Row) {
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(b.Ended, a.Ended) })
}

// inFull shows the watched transaction: its current state while it is open, then its final state.
func (m *Model) inFull() *Detail {
	if m.watch == 0 {
		return nil
	}
	if m.detail != nil && m.detail.Found && m.detail.Row.Ended != 0 {
		return m.detail
	}
	if e := m.linger.find(m.watch); e != nil {
		d := &Detail{Row: *m.endedRow(e), Found: true}
		m.look.Set(e.tx)
		d.Text = m.draw()
		m.detail = d
		return d
	}
	var d *Detail
	for tx := range m.d.Open() {
		if tx.Serial() != m.watch {
			continue
		}
		m.look.Set(tx)
		tx.SortPackets()
		d = &Detail{Row: m.row.row(&m.look, m.now, int64(m.opt.Stuck), 0), Found: true, Text: m.draw()}
		break
	}
	if d == nil {
		d = &Detail{Row: Row{Serial: m.watch}}
		if m.detail != nil {
			*d = *m.detail
			d.Found = false
		}
	}
	m.detail = d
	return d
}

// draw draws the current transaction: its ladder, then headers and fields.
func (m *Model) draw() string {
	draw := ladder.Drawer{Width: m.width, ASCII: m.plain}
	tree := text.Tree{Level: 1, Width: m.width}
	b := draw.Append(nil, &m.look)
	b = append(b, '\n')
	b = tree.Append(b, &m.look)
	// A hostile message must not fill the screen for hours.
	for i, n := 0, 0; i < len(b); n++ {
		j := bytes.IndexByte(b[i:], '\n')
		if j < 0 {
			break
		}
		if i += j + 1; n+1 == maxDetail {
			b = append(b[:i], "(more is left out)\n"...)
			break
		}
	}
	return string(b)
}
