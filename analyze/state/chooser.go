package state

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"
)

// chooserBytes is how much a Chooser holds in memory. What is more goes to a temporary file.
const chooserBytes = 16 << 20

// buckets is how many parts the connections are divided into by their ends. Choose needs one of them at a time.
const buckets = 64

// Chooser makes the choice of Choose for more views than memory holds. Views are numbered from 0, in the order of Add.
type Chooser struct {
	limit int // bytes in memory; 0 stands for chooserBytes
	held  int
	n     int
	parts [buckets]bucket
	file  *os.File
	size  int64       // of the file
	not   []uint64    // a bit for each view: it does not count
	taps  map[int]int // by view: how many taps saw the connection, if several did

	doubtful int
}

// bucket has the views of some connections: in memory, and before that in parts of the file.
type bucket struct {
	b    []byte
	runs [][2]int64 // offset and length
}

// Add adds a view; tap is the number of its tap. What the View refers to is not kept.
func (c *Chooser) Add(tap int, v View) error {
	w := NewWriter(nil)
	v.Seen.codeName(w)
	sum := sha256.Sum256(w.Bytes())
	p := &c.parts[sum[0]%buckets]
	w = NewWriter(w.Bytes()[:0])
	n := c.n
	Number(w, &n)
	Number(w, &tap)
	w.Text(&v.Tap, len(v.Tap))
	Number(w, &v.Near)
	Number(w, &v.Timed)
	v.Seen.Code(w)
	before := len(p.b)
	p.b = binary.AppendUvarint(p.b, uint64(len(w.Bytes())))
	p.b = append(p.b, w.Bytes()...)
	c.held += len(p.b) - before
	c.n++
	if c.held <= cmp.Or(c.limit, chooserBytes) {
		return nil
	}
	return c.spill()
}

// spill writes what is in memory to the file.
func (c *Chooser) spill() (err error) {
	if c.file == nil {
		if c.file, err = os.CreateTemp("", "rpcrdma-views-"); err != nil {
			return fmt.Errorf("the connections of all taps are more than memory holds, and there can be no temporary file (see TMPDIR): %w", err)
		}
		_ = os.Remove(c.file.Name()) // it goes with the program, however that ends
	}
	for i := range c.parts {
		p := &c.parts[i]
		if len(p.b) == 0 {
			continue
		}
		if _, err := c.file.WriteAt(p.b, c.size); err != nil {
			return fmt.Errorf("the connections of all taps are more than memory holds, and the temporary file (see TMPDIR) fails: %w", err)
		}
		p.runs = append(p.runs, [2]int64{c.size, int64(len(p.b))})
		c.size += int64(len(p.b))
		p.b = p.b[:0]
	}
	c.held = 0
	return nil
}

// Close removes the temporary file. It may be called more than once.
func (c *Chooser) Close() {
	if c.file != nil {
		c.file.Close()
		c.file = nil
	}
	c.parts = [buckets]bucket{}
}

// Choose decides. Nothing can be added afterwards.
func (c *Chooser) Choose() error {
	defer c.Close()
	c.not = make([]uint64, (c.n+63)/64)
	c.taps = make(map[int]int)
	for i := range c.parts {
		views, places, err := c.read(&c.parts[i])
		if err != nil {
			return err
		}
		c.doubtful += choose(views, func(view int, counts bool, taps int) {
			if !counts {
				c.not[places[view]/64] |= 1 << (places[view] % 64)
			}
			if taps > 1 {
				c.taps[places[view]] = taps
			}
		})
		c.parts[i] = bucket{}
	}
	return nil
}

// read returns the views of a bucket, and their numbers.
func (c *Chooser) read(p *bucket) (views []View, places []int, err error) {
	taps := make(map[int]string) // one string for all views of a tap
	add := func(b []byte) {
		for len(b) > 0 && err == nil {
			n, k := binary.Uvarint(b)
			if k <= 0 || n > uint64(len(b)-k) {
				err = io.ErrUnexpectedEOF
				return
			}
			r := NewReader(b[k : k+int(n)])
			b = b[k+int(n):]
			var place, tap int
			v := View{Seen: new(Seen)}
			Number(r, &place)
			Number(r, &tap)
			r.Text(&v.Tap, len(r.b))
			Number(r, &v.Near)
			Number(r, &v.Timed)
			v.Seen.Code(r)
			if err = r.End(); err != nil {
				return
			}
			if name, ok := taps[tap]; ok {
				v.Tap = name
			} else {
				taps[tap] = v.Tap
			}
			views, places = append(views, v), append(places, place)
		}
	}
	for _, run := range p.runs {
		b := make([]byte, run[1])
		if _, err = c.file.ReadAt(b, run[0]); err != nil {
			break
		}
		add(b)
	}
	add(p.b)
	if err != nil {
		return nil, nil, fmt.Errorf("the temporary file with the connections of all taps cannot be read: %w", err)
	}
	return views, places, nil
}

// Len is how many views were added.
func (c *Chooser) Len() int { return c.n }

// Taps is how many taps saw the connection of a view.
func (c *Chooser) Taps(view int) int { return max(c.taps[view], 1) }

// Doubtful is how many views have the ends and a call of a view of another tap, but a time that is too far from that one's for one
// connection, which the other tap did not see at that time. Either ends and calls came again, or the clock of a tap is wrong, and
// then both count what is one connection.
func (c *Chooser) Doubtful() int { return c.doubtful }

// DoubtfulNote says what Doubtful has found; it is empty if that is nothing.
func DoubtfulNote(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d connections have ends and calls in common with one of another tap, but times more than ten minutes apart. All count: "+
		"if it is clocks that differ, their transactions are counted twice", n)
}

// Counts reports whether a view counts, after Choose.
func (c *Chooser) Counts(view int) bool { return c.not[view/64]&(1<<(view%64)) == 0 }

// Sightings is what is kept of units whose sections have one connection after another: which count, and the numbers
// that they get. The zero value is empty.
type Sightings struct {
	chooser Chooser
	numbers Numbering
	first   []int // the number of the first connection of each unit
	err     error
}

// Add adds the connections of a unit.
func (s *Sightings) Add(views []View) {
	s.first = append(s.first, s.chooser.Len())
	for _, v := range views {
		s.numbers.Add(v.Seen.First, s.chooser.Len(), v.Seen, "")
		if err := s.chooser.Add(len(s.first), v); err != nil && s.err == nil {
			s.err = err
		}
	}
}

// Choose decides which count, and numbers them.
func (s *Sightings) Choose() error {
	if err := cmp.Or(s.err, s.chooser.Choose()); err != nil {
		return err
	}
	s.numbers.Finish(&s.chooser)
	return nil
}

// Doubtful calls Chooser.Doubtful.
func (s *Sightings) Doubtful() int { return s.chooser.Doubtful() }

// Number is the number of a connection, by the place of its unit in the order of Add and its place in the unit, and
// how many taps saw it. The number is 0 if it does not count.
func (s *Sightings) Number(unit, i int) (number, taps int) {
	n := s.first[unit] + i
	return s.numbers.Number(n), s.chooser.Taps(n)
}

// Close removes the temporary file of the Chooser.
func (s *Sightings) Close() { s.chooser.Close() }

// Numbering numbers the connections of all taps by their start. Those that start at the same time are ordered by a
// hash of what was seen of them, so that the order does not depend on which tap has which.
type Numbering struct {
	list    []started
	numbers []uint32
}

type started struct {
	first int64
	tie   [12]byte
	place uint32 // in the order of Add
	view  int32  // of the Chooser; -1 without one
}

// Add adds a connection, and returns its place. view is its number in a Chooser, -1 if it always counts; seen may be
// nil, and then unit is the name of the unit.
func (n *Numbering) Add(first int64, view int, seen *Seen, unit string) int {
	w := NewWriter(nil)
	if seen != nil {
		seen.Code(w)
	} else {
		w.Text(&unit, len(unit))
	}
	x := started{first: first, place: uint32(len(n.list)), view: int32(view)}
	sum := sha256.Sum256(w.Bytes())
	copy(x.tie[:], sum[:])
	n.list = append(n.list, x)
	return len(n.list) - 1
}

// Len is how many connections were added.
func (n *Numbering) Len() int { return len(n.list) }

// Finish gives numbers, from 1, to the connections that count.
func (n *Numbering) Finish(c *Chooser) {
	n.numbers = make([]uint32, len(n.list))
	list := slices.DeleteFunc(n.list, func(x started) bool { return x.view >= 0 && !c.Counts(int(x.view)) })
	slices.SortFunc(list, func(a, b started) int {
		return cmp.Or(cmp.Compare(a.first, b.first), bytes.Compare(a.tie[:], b.tie[:]), cmp.Compare(a.place, b.place))
	})
	for i, x := range list {
		n.numbers[x.place] = uint32(i + 1)
	}
	n.list = nil
}

// Number is the number of the connection at a place, 0 if it does not count.
func (n *Numbering) Number(place int) int { return int(n.numbers[place]) }
