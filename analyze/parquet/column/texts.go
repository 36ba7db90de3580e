package column

import (
	"unsafe"

	"github.com/parquet-go/parquet-go/encoding/plain"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/format"

	"github.com/rpcrdma/toolkit/internal/digits"
)

// Texts is a column of STRING. Its values are numbered in a dictionary, until that becomes too large: values
// are then written as they are, up to the end of the row group.
type Texts struct {
	chunk
	texts
	turned texts // see column.turn
	full   bool  // no more dictionary

	hex     bool     // values are given as bytes, and written as digits
	words   []string // as they are written
	keys    []string // as they are given, if hex
	numbers map[string]int32
	used    []uint32 // by number: the page that had it last
	bytes   int
	arena   arena
	most    int // bytes

	last   string // as it was given
	number int32
	known  [knownSlots]known
	recent [recentSlots]recent
	text   []byte // a value as it is written

	pageNo    uint32 // another one in each page
	group     uint32 // row groups so far
	groupLo   []byte
	groupHi   []byte
	groupSome bool
	pages     int // with the dictionary
}

// texts is the values of a page.
type texts struct {
	at           []int32    // in the dictionary
	equal        run[int32] // instead of at: all values of the page so far
	asIs         bool       // there is no dictionary; set when the page has ended
	raw          []byte     // values as they are
	count        int        // of them
	lo, hi       string
	some         bool
	loRaw, hiRaw []byte // lo and hi, without a dictionary
}

func (c *Texts) turn() {
	c.texts, c.turned = c.turned, c.texts
	c.turned.asIs = c.full
	c.full = c.full || c.bytes > c.most
	c.pageNo++
}

// known is a string that does not change, with its number: it is found by its place in memory.
type known struct {
	s      string
	number int32
	page   uint32 // 1 + that of the page
}

const knownSlots = 32

// recent is a value given lately, with its number: most files are used several times in a row.
type recent struct {
	key    string
	number int32
}

const recentSlots = 1 << recentBits

const recentBits = 8

// Mark is where a value was written last, kept by whoever writes it often: to find it again takes no comparison of text. A mark belongs to
// one column and one value.
type Mark struct {
	number      int32
	page, group uint32 // 1 + those of the column
}

// Again appends the value of a mark, if it is known in the page already; otherwise it returns false, and AddMarked has to be called.
func (c *Texts) Again(m *Mark) bool {
	if c.full || m.page != c.pageNo+1 || m.group != c.group+1 {
		return false
	}
	c.put(m.number)
	return true
}

// AddMarked is AddBytes, and sets the mark.
func (c *Texts) AddMarked(b []byte, m *Mark) {
	c.AddTextMarked(unsafe.String(unsafe.SliceData(b), len(b)), m)
}

// AddTextMarked is Add, and sets the mark.
func (c *Texts) AddTextMarked(s string, m *Mark) {
	c.add(s)
	*m = Mark{c.number, c.pageNo + 1, c.group + 1}
}

// Marks is where a list of values was written last, likewise.
type Marks struct {
	numbers     []int32
	page, group uint32
}

// Forget empties a list. It keeps its room.
func (m *Marks) Forget() { *m = Marks{numbers: m.numbers[:0]} }

// AllAgain appends all values of a list, if they are known in the page already; otherwise it returns false, and AddNext has to be called
// for each of them, after Forget.
func (c *Texts) AllAgain(m *Marks) bool {
	if c.full || m.page != c.pageNo+1 || m.group != c.group+1 {
		return false
	}
	if len(c.at) > 0 {
		c.at = append(c.at, m.numbers...)
		return true
	}
	for _, n := range m.numbers {
		c.put(n)
	}
	return true
}

// AddNext is Add, and makes the value the next one of a list.
func (c *Texts) AddNext(s string, m *Marks) {
	c.Add(s)
	n := c.equal.v
	if len(c.at) > 0 {
		n = c.at[len(c.at)-1]
	}
	m.numbers, m.page, m.group = append(m.numbers, n), c.pageNo+1, c.group+1
}

var indexes rle.DictionaryEncoding

// Add appends a string that does not change as long as the file is written: a constant, or one that is made
// once. It is found by its place in memory.
func (c *Texts) Add(s string) {
	if c.full || len(s) == 0 {
		c.add(s)
		return
	}
	k := &c.known[uintptr(unsafe.Pointer(unsafe.StringData(s)))>>3%knownSlots]
	if k.page == c.pageNo+1 && unsafe.StringData(k.s) == unsafe.StringData(s) && len(k.s) == len(s) {
		c.put(k.number)
		return
	}
	c.add(s)
	if !c.full {
		*k = known{s, c.number, c.pageNo + 1}
	}
}

// Repeat is Add the given number of times.
func (c *Texts) Repeat(s string, times int) {
	for ; times > 0 && c.full; times-- {
		c.add(s)
	}
	if times == 0 {
		return
	}
	c.Add(s)
	n := c.equal.v
	if len(c.at) > 0 {
		n = c.at[len(c.at)-1]
	}
	c.repeat(n, times-1)
}

// put appends a value by its number.
func (c *Texts) put(n int32) {
	if len(c.at) > 0 {
		c.at = append(c.at, n)
		return
	}
	c.repeat(n, 1)
}

// repeat appends a value by its number the given number of times.
func (c *Texts) repeat(n int32, times int) {
	if len(c.at) > 0 || !c.equal.add(n, times) {
		c.at = appendTimes(c.equal.spill(c.at), n, times)
	}
}

// Hex lets values be bytes, which are written as hexadecimal digits: those of a file are converted once.
func (c *Texts) Hex() *Texts {
	c.hex = true
	return c
}

// AddBytes appends a string whose bytes the caller may use again.
func (c *Texts) AddBytes(b []byte) { c.add(unsafe.String(unsafe.SliceData(b), len(b))) }

// find returns the number of a value, as it is given, and makes it one of the dictionary.
func (c *Texts) find(s string) int32 {
	k := &c.recent[slot(s)]
	if k.key == s && s != "" {
		return k.number
	}
	n, ok := c.numbers[s]
	if !ok {
		if c.numbers == nil {
			c.numbers = make(map[string]int32)
		}
		n = int32(len(c.words))
		s = c.arena.copy(s)
		word := s
		if c.hex {
			c.keys = append(c.keys, s)
			word = c.arena.copy(c.digits(s))
		}
		c.numbers[s] = n
		c.words, c.used = append(c.words, word), append(c.used, 0)
		c.bytes += len(word)
	}
	*k = recent{c.key(n), n}
	return n
}

// digits is a value in hexadecimal, until the next call.
func (c *Texts) digits(s string) string {
	c.text = digits.Hex(c.text[:0], []byte(s))
	return unsafe.String(unsafe.SliceData(c.text), len(c.text))
}

// key is a value of the dictionary as it was given.
func (c *Texts) key(n int32) string {
	if c.hex {
		return c.keys[n]
	}
	return c.words[n]
}

// slot is where a value is among the recent ones. File handles and names differ at their ends.
func slot(s string) uint64 {
	n := len(s)
	x := uint64(n)
	if n >= 8 {
		s = s[n-8:]
		x += uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	} else {
		for i := range n {
			x = x<<8 + uint64(s[i])
		}
	}
	return x * 0x9e3779b97f4a7c15 >> (64 - recentBits)
}

func (c *Texts) add(s string) {
	if c.full {
		if c.hex {
			s = c.digits(s)
		}
		c.raw = plain.AppendByteArrayString(c.raw, s)
		c.count++
		if !c.some || s < string(c.loRaw) {
			c.loRaw = append(c.loRaw[:0], s...)
		}
		if !c.some || s > string(c.hiRaw) {
			c.hiRaw = append(c.hiRaw[:0], s...)
		}
		c.some = true
		return
	}
	if s != c.last || len(c.words) == 0 {
		c.number = c.find(s)
		c.last = c.key(c.number)
	}
	c.put(c.number)
	if c.used[c.number] == c.pageNo+1 {
		return
	}
	c.used[c.number] = c.pageNo + 1
	if s = c.words[c.number]; !c.some || s < c.lo {
		c.lo = s
	}
	if !c.some || s > c.hi {
		c.hi = s
	}
	c.some = true
}

func (c *Texts) page(p *pager) {
	var b bounds
	x := &c.turned
	how, n := format.RLEDictionary, len(x.at)+x.equal.n
	if x.asIs {
		how, n = format.Plain, x.count
		p.data = append(p.data[:0], x.raw...)
		b = bounds{x.loRaw, x.hiRaw}
	} else {
		if x.equal.n > 0 {
			p.data = append(p.data[:0], p.texts.encode(x.equal)...)
		} else {
			p.data, _ = indexes.EncodeInt32(p.data, x.at)
		}
		b = bounds{[]byte(x.lo), []byte(x.hi)}
		c.pages++
	}
	if !x.some {
		b = bounds{}
	} else {
		if !c.groupSome || string(b.lo) < string(c.groupLo) {
			c.groupLo = append(c.groupLo[:0], b.lo...)
		}
		if !c.groupSome || string(b.hi) > string(c.groupHi) {
			c.groupHi = append(c.groupHi[:0], b.hi...)
		}
		c.groupSome = true
	}
	c.write(p, how, n, b.short())
	*x = texts{at: keep(x.at), raw: keep(x.raw), loRaw: x.loRaw, hiRaw: x.hiRaw}
}

// dictionary writes the dictionary page and returns its number of values.
func (c *Texts) dictionary(p *pager) int {
	p.data = p.data[:0]
	for _, s := range c.words {
		p.data = plain.AppendByteArrayString(p.data, s)
	}
	return len(c.words)
}

func (c *Texts) limits() bounds {
	if !c.groupSome {
		return bounds{}
	}
	return bounds{append([]byte{}, c.groupLo...), append([]byte{}, c.groupHi...)}
}

func (c *Texts) reset() {
	c.texts = texts{at: c.at[:0], raw: c.raw[:0], loRaw: c.loRaw, hiRaw: c.hiRaw}
	c.full = false
	if len(c.words) > maxKept {
		c.numbers = nil
	}
	clear(c.numbers)
	clear(c.words)
	clear(c.keys)
	c.words, c.keys, c.used, c.bytes = keep(c.words), keep(c.keys), keep(c.used), 0
	c.arena.reset()
	c.last, c.number = "", 0
	c.groupLo, c.groupHi, c.groupSome = c.groupLo[:0], c.groupHi[:0], false
	c.known, c.recent, c.text = [knownSlots]known{}, [recentSlots]recent{}, keep(c.text)
	c.pageNo, c.pages = 0, 0
	c.group++
}

// arena holds the strings of a dictionary.
type arena struct {
	blocks [][]byte
	at     int
}

const (
	arenaBlock = 4 << 10
	arenaKept  = 64 // blocks
)

func (a *arena) copy(s string) string {
	if len(s) > arenaBlock/4 {
		return string([]byte(s))
	}
	for ; a.at < len(a.blocks); a.at++ {
		if b := a.blocks[a.at]; cap(b)-len(b) >= len(s) {
			break
		}
	}
	if a.at == len(a.blocks) {
		a.blocks = append(a.blocks, make([]byte, 0, arenaBlock))
	}
	b := &a.blocks[a.at]
	n := len(*b)
	*b = append(*b, s...)
	return unsafe.String(unsafe.SliceData((*b)[n:]), len(s))
}

func (a *arena) reset() {
	a.at = 0
	if len(a.blocks) > arenaKept {
		clear(a.blocks[arenaKept:])
		a.blocks = a.blocks[:arenaKept]
	}
	for i := range a.blocks {
		a.blocks[i] = a.blocks[i][:0]
	}
}
