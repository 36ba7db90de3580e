package capture

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"unicode/utf8"
)

// Format is a file format that a Writer writes.
type Format uint8

const (
	// Pcapng keeps taps, link types and comments; times in nanoseconds.
	Pcapng Format = iota
	// Pcap is the classic format with nanoseconds: one link type, no taps.
	Pcap
)

func (f Format) String() string {
	switch f {
	case Pcapng:
		return "pcapng"
	case Pcap:
		return "pcap"
	}
	return fmt.Sprintf("Format(%d)", uint8(f))
}

// WriterOptions say how a Writer writes. The zero value is ready for use.
type WriterOptions struct {
	Format Format
	// Link is the link type of a pcap without packets. A pcap with packets
	// has that of the first.
	Link LinkType
	// Taps describes the taps of the packets to come; the method Taps of a
	// Reader fits. It is called when a tap is met for the first time. Nil,
	// or a list that is too short, leaves taps without a name.
	Taps func() []Tap
	// Application names the writing program in a pcapng; empty for none.
	Application string
	// Buffer is how many bytes are written at once. 0 means 256 KiB.
	Buffer int
}

const defaultBuffer = 256 << 10

func (o *WriterOptions) buffer() int {
	if o.Buffer <= 0 {
		return defaultBuffer
	}
	return o.Buffer
}

// ErrMixedLinks says that a pcap cannot hold packets of several link types.
var ErrMixedLinks = errors.New("pcap holds one link type only: write pcapng")

// ErrTimeRange says that a time cannot be written: before 1970, or in pcap
// after 2106.
var ErrTimeRange = errors.New("time out of the range of the format")

// errLong says that a packet does not fit in a block.
var errLong = errors.New("packet too long to write")

// Writer writes packets to a stream. Errors of the stream are sticky.
type Writer struct {
	w       *bufio.Writer
	tail    tail
	opts    WriterOptions
	started bool
	written int64
	link    LinkType // of a pcap
	err     error

	// Of a pcapng: the interface of each tap, and those of further link
	// types that a tap has.
	ifaces []LinkType // by interface: its link type
	extra  map[tapLink]uint32
	shared int // interfaces whose index is the tap

	head [32]byte
	buf  []byte
	one  [1]string
}

type tapLink struct {
	tap  uint16
	link LinkType
}

// NewWriter returns a Writer. Nothing is written before the first packet, or
// Flush.
func NewWriter(w io.Writer, opts WriterOptions) *Writer {
	t := &Writer{opts: opts}
	t.Attach(w)
	return t
}

// Detach writes what is buffered and releases the stream and the buffer. Before more is written, Attach has
// to give the Writer a stream that continues where the former one ended: of many captures written in
// parallel, not all need to be open files.
func (w *Writer) Detach() error {
	err := w.Flush()
	if err == nil {
		w.w = nil
	}
	return err
}

// Attach gives a detached Writer another stream.
func (w *Writer) Attach(s io.Writer) {
	w.tail.w = s
	w.w = bufio.NewWriterSize(&w.tail, w.opts.buffer())
}

// Write adds a packet. Number and Offset are not kept; Tap only in pcapng,
// where it becomes the interface.
func (w *Writer) Write(p *Packet) error { return w.WriteComment(p, "") }

// WriteComment adds a packet with a comment, which pcap drops. A comment is
// cut to 65535 bytes.
func (w *Writer) WriteComment(p *Packet, comment string) error {
	if comment == "" {
		return w.WriteComments(p, nil)
	}
	w.one[0] = comment
	return w.WriteComments(p, w.one[:])
}

// WriteComments adds a packet with several comments, which pcap drops. Each is
// cut to 65535 bytes.
func (w *Writer) WriteComments(p *Packet, comments []string) error {
	if w.err != nil {
		return w.err
	}
	var err error
	if w.opts.Format == Pcap {
		err = w.writePcap(p)
	} else {
		err = w.writeNg(p, comments)
	}
	if err == nil {
		w.tail.end(w.written, true)
	}
	return err
}

// Statistics are counters of a tap, as of a moment.
type Statistics struct {
	Time     int64  // of the moment, nanoseconds since 1970
	Start    int64  // of the capture; 0 if unknown
	Received uint64 // packets that the filter took
	Dropped  uint64 // of these, those that were lost for lack of room
	Missed   uint64 // packets that the interface lost
}

// WriteStatistics adds counters of a tap, which pcap drops. They belong at the
// end. link is the link type of a tap without packets.
func (w *Writer) WriteStatistics(tap uint16, link LinkType, s Statistics) error {
	if w.err != nil || w.opts.Format == Pcap {
		return w.err
	}
	if s.Time < 0 || s.Start < 0 {
		return ErrTimeRange
	}
	if !w.started {
		w.startNg()
	}
	id := w.ifaceOf(&Packet{Tap: tap, Link: link})
	le := binary.LittleEndian
	w.begin(blockStatistics)
	w.buf = le.AppendUint32(w.buf, id)
	halves := func(b []byte, t int64) []byte { // the upper one first, as in packets
		return le.AppendUint32(le.AppendUint32(b, uint32(uint64(t)>>32)), uint32(t))
	}
	w.buf = halves(w.buf, s.Time)
	if s.Start != 0 {
		w.option(isbStart, string(halves(nil, s.Start)))
		w.option(isbEnd, string(halves(nil, s.Time)))
	}
	count := func(code uint16, n uint64) { w.option(code, string(le.AppendUint64(nil, n))) }
	count(isbReceived, s.Received)
	count(isbIfaceDropped, s.Missed)
	count(isbSystemDropped, s.Dropped)
	w.option(optEnd, "")
	w.end()
	if w.err == nil {
		w.tail.end(w.written, false)
	}
	return w.err
}

// Flush writes what is buffered. A capture without packets gets its header
// here.
func (w *Writer) Flush() error {
	if w.err == nil && !w.started {
		if w.opts.Format == Pcap {
			w.startPcap(w.opts.Link)
		} else {
			w.startNg()
		}
		w.tail.end(w.written, false)
	}
	if w.err == nil {
		w.err = w.w.Flush()
	}
	return w.err
}

// Stored returns how many packets the stream has accepted completely, and where the last of these records
// ends, in bytes from the beginning of the capture. After an error this is what is worth keeping; buffered
// packets do not count.
func (w *Writer) Stored() (packets uint64, bytes int64) { return w.tail.packets, w.tail.whole }

// Written returns how many bytes were written, those that are still buffered
// included.
func (w *Writer) Written() int64 { return w.written }

func (w *Writer) put(p []byte) {
	w.written += int64(len(p))
	if w.err == nil {
		_, w.err = w.w.Write(p)
	}
}

// wireLength returns the length on the wire to write: at least the captured length.
func wireLength(p *Packet) uint32 { return max(p.Length, uint32(len(p.Data))) }

func (w *Writer) startPcap(link LinkType) {
	w.started, w.link = true, link
	h := w.head[:pcapFileHeader]
	le := binary.LittleEndian
	le.PutUint32(h[0:], magicNano)
	le.PutUint16(h[4:], 2)
	le.PutUint16(h[6:], 4)
	le.PutUint64(h[8:], 0)
	le.PutUint32(h[16:], unlimitedSnapLen)
	le.PutUint32(h[20:], uint32(link))
	w.put(h)
}

func (w *Writer) writePcap(p *Packet) error {
	if p.Time < 0 || p.Time/1e9 > math.MaxUint32 {
		return ErrTimeRange
	}
	if uint64(len(p.Data)) > greatestRecord {
		return errLong
	}
	if !w.started {
		w.startPcap(p.Link)
	}
	if p.Link != w.link {
		return ErrMixedLinks
	}
	h := w.head[:pcapRecordHeader]
	le := binary.LittleEndian
	le.PutUint32(h[0:], uint32(p.Time/1e9))
	le.PutUint32(h[4:], uint32(p.Time%1e9))
	le.PutUint32(h[8:], uint32(len(p.Data)))
	le.PutUint32(h[12:], wireLength(p))
	w.put(h)
	w.put(p.Data)
	return w.err
}

// option appends an option to w.buf.
func (w *Writer) option(code uint16, v string) {
	w.buf = binary.LittleEndian.AppendUint16(w.buf, code)
	w.buf = binary.LittleEndian.AppendUint16(w.buf, uint16(len(v)))
	w.buf = append(w.buf, v...)
	w.pad()
}

func (w *Writer) pad() {
	for len(w.buf)&3 != 0 {
		w.buf = append(w.buf, 0)
	}
}

// text cuts an option's text to what its length field can express.
func text(s string) string {
	if len(s) <= math.MaxUint16 {
		return s
	}
	n := math.MaxUint16
	for n > math.MaxUint16-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n-- // not within a character
	}
	return s[:n]
}

// begin starts a block in w.buf.
func (w *Writer) begin(typ uint32) {
	w.buf = binary.LittleEndian.AppendUint32(w.buf[:0], typ)
	w.buf = binary.LittleEndian.AppendUint32(w.buf, 0)
}

// end completes the block in w.buf and writes it.
func (w *Writer) end() {
	n := uint32(len(w.buf) + 4)
	binary.LittleEndian.PutUint32(w.buf[4:], n)
	w.buf = binary.LittleEndian.AppendUint32(w.buf, n)
	w.put(w.buf)
}

func (w *Writer) startNg() {
	w.started = true
	w.begin(blockSection)
	le := binary.LittleEndian
	w.buf = le.AppendUint32(w.buf, byteOrderMagic)
	w.buf = le.AppendUint16(w.buf, 1)
	w.buf = le.AppendUint16(w.buf, 0)
	w.buf = le.AppendUint64(w.buf, math.MaxUint64) // length not known
	if w.opts.Application != "" {
		const shbUserAppl = 4
		w.option(shbUserAppl, text(w.opts.Application))
		w.option(optEnd, "")
	}
	w.end()
}

// iface writes an interface.
func (w *Writer) iface(t Tap) uint32 {
	w.begin(blockInterface)
	le := binary.LittleEndian
	w.buf = le.AppendUint16(w.buf, uint16(t.Link))
	w.buf = le.AppendUint16(w.buf, 0)
	w.buf = le.AppendUint32(w.buf, t.SnapLen)
	if t.Name != "" {
		w.option(ifName, text(t.Name))
	}
	if t.Description != "" {
		w.option(ifDescription, text(t.Description))
	}
	w.option(ifResolution, "\x09")
	w.option(optEnd, "")
	w.end()
	w.ifaces = append(w.ifaces, t.Link)
	return uint32(len(w.ifaces) - 1)
}

// ifaceOf returns the interface for a packet. The index of an interface is the
// tap's, unless the link type of a tap changes.
func (w *Writer) ifaceOf(p *Packet) uint32 {
	tap := int(p.Tap)
	if tap < w.shared && w.ifaces[tap] == p.Link {
		return uint32(tap)
	}
	key := tapLink{p.Tap, p.Link}
	if id, ok := w.extra[key]; ok {
		return id
	}
	var taps []Tap
	if w.opts.Taps != nil {
		taps = w.opts.Taps()
	}
	describe := func(i int) Tap {
		t := Tap{Link: p.Link}
		if i < len(taps) {
			t = taps[i]
		}
		return t
	}
	if len(w.extra) == 0 { // no interface was put out of line
		for w.shared <= tap {
			t := describe(w.shared)
			if w.shared == tap {
				t.Link = p.Link
			}
			w.iface(t)
			w.shared++
		}
		if w.ifaces[tap] == p.Link {
			return uint32(tap)
		}
	}
	t := describe(tap)
	t.Link = p.Link
	if w.extra == nil {
		w.extra = make(map[tapLink]uint32)
	}
	id := w.iface(t)
	w.extra[key] = id
	return id
}

func (w *Writer) writeNg(p *Packet, comments []string) error {
	if p.Time < 0 {
		return ErrTimeRange
	}
	if uint64(len(p.Data)) > greatestRecord {
		return errLong
	}
	if !w.started {
		w.startNg()
	}
	id := w.ifaceOf(p)
	aligned := len(p.Data) &^ 3
	w.buf = append(w.buf[:0], p.Data[aligned:]...)
	w.pad()
	for _, c := range comments {
		w.option(optComment, text(c))
	}
	if len(comments) > 0 {
		w.option(optEnd, "")
	}
	size := uint32(packetMinimum + aligned + len(w.buf))
	h := w.head[:28]
	le := binary.LittleEndian
	le.PutUint32(h[0:], blockEnhanced)
	le.PutUint32(h[4:], size)
	le.PutUint32(h[8:], id)
	le.PutUint32(h[12:], uint32(uint64(p.Time)>>32))
	le.PutUint32(h[16:], uint32(p.Time))
	le.PutUint32(h[20:], uint32(len(p.Data)))
	le.PutUint32(h[24:], wireLength(p))
	w.put(h)
	w.put(p.Data[:aligned])
	w.buf = le.AppendUint32(w.buf, size)
	w.put(w.buf)
	return w.err
}
