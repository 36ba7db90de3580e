package edge

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/rpcrdma/toolkit/analyze/parquet"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/decode/rpc"
)

// Part is a Parquet file that is whole.
type Part struct {
	File string `json:"file"` // its name in the folder: DAY.AGENT.NUMBER.parquet
	Rows uint64 `json:"rows"`
	Lost uint64 `json:"rows_lost"` // that could not be written to any file, since the start
}

const (
	day      = int64(24 * time.Hour)
	maxDays  = 2        // files that are open at once
	partSize = 64 << 20 // bytes after which a file ends before its time
	maxRows  = 4 << 20  // rows after which it does
	rowGroup = 8 << 20
)

// Parts writes transactions to files by day of their start. A file ends after a time of
// the capture, so that it can be taken away.
type Parts struct {
	Dir, Tap, Agent string
	Every           time.Duration
	Ended           func(Part)

	open  []*part
	index int
	lost  uint64
	err   error
	again int64 // when to try again after err
}

type part struct {
	start int64 // of the day
	until int64 // when it ends
	name  string
	file  *os.File
	buf   *bufio.Writer
	w     *parquet.Writer
}

// Add writes a transaction. After an error, such as that of a full disk, transactions
// are counted until the time of a file has passed.
func (p *Parts) Add(v *rpc.View) {
	at := v.Tx.First().Time
	if p.err != nil && !p.passed(p.again, at) {
		p.lost++
		return
	}
	x, err := p.part(at)
	if err == nil {
		err = x.w.Add(v)
	}
	if err != nil {
		p.lost++
		p.fail(err, at)
	}
}

// passed reports whether a time, which was no further away than Every, has passed. If it is, the clock was set back, and nobody waits
// until it has caught up.
func (p *Parts) passed(t, now int64) bool { return now >= t || t-now > int64(p.Every) }

// Lost is how many transactions could not be written, and why not the latest ones.
func (p *Parts) Lost() (lost uint64, err error) { return p.lost, p.err }

// fail gives up the files that are open.
func (p *Parts) fail(err error, now int64) {
	p.err, p.again = err, now+int64(p.Every)
	for _, x := range p.open {
		p.lost += x.w.Rows()
		x.file.Close()
		os.Remove(x.file.Name())
	}
	p.open = nil
}

func (p *Parts) part(at int64) (*part, error) {
	start := at - ((at%day)+day)%day
	for _, x := range p.open {
		if x.start == start && x.w.Rows() < maxRows {
			return x, nil
		}
	}
	if len(p.open) >= maxDays {
		if err := p.end(p.open[0]); err != nil {
			return nil, err
		}
	}
	x := &part{start: start, until: at + int64(p.Every), name: fmt.Sprintf("%s.%s.%d.parquet", layout.DayOf(start), p.Agent, p.index)}
	p.index++
	f, err := os.OpenFile(filepath.Join(p.Dir, x.name+".part"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	x.file, x.buf = f, bufio.NewWriterSize(f, 64<<10)
	x.w = parquet.NewSmallWriter(x.buf, map[string]string{"rpcrdma.tap": p.Tap, "rpcrdma.unit": p.Agent}, rowGroup)
	p.open = append(p.open, x)
	return x, nil
}

// Tick ends files whose time has come.
func (p *Parts) Tick(now int64) {
	for i := 0; i < len(p.open); i++ {
		x := p.open[i]
		st, err := x.file.Stat()
		if err == nil && (p.passed(x.until, now) || st.Size() >= partSize || x.w.Rows() >= maxRows) {
			err = p.end(x)
			i--
		}
		if err != nil {
			p.fail(err, now)
			return
		}
	}
}

// Close ends all files.
func (p *Parts) Close() error {
	for len(p.open) > 0 {
		if err := p.end(p.open[0]); err != nil {
			p.fail(err, 0)
			return err
		}
	}
	return nil
}

// end gives a file its name, under which it is whole.
func (p *Parts) end(x *part) error {
	err := errors.Join(x.w.Close(), x.buf.Flush(), x.file.Sync(), x.file.Close())
	if err == nil {
		err = os.Rename(x.file.Name(), filepath.Join(p.Dir, x.name))
	}
	if err != nil {
		return err
	}
	for i := range p.open {
		if p.open[i] == x {
			p.open = append(p.open[:i], p.open[i+1:]...)
			break
		}
	}
	p.Ended(Part{File: x.name, Rows: x.w.Rows(), Lost: p.lost})
	return nil
}

var partName = regexp.MustCompile(`^(\d{4}-\d\d-\d\d)\.([0-9a-f]{32})\.(\d{1,6})\.parquet$`)

// objectName is the name in the store of a file in the folder; "" if it is not such a file.
func objectName(file, tap string) string {
	m := partName.FindStringSubmatch(file)
	if m == nil {
		return ""
	}
	n, err := strconv.Atoi(m[3])
	if _, bad := time.Parse(time.DateOnly, m[1]); bad != nil || err != nil || n >= layout.MaxParts {
		return ""
	}
	return layout.PartName(m[1], tap, m[2], n)
}
