package capture

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
)

// file turns the bytes of one input into packets.
//
// Bytes are read straight into the memory of the batch and decoded in place.
// The record that the end of the batch cuts is copied to carry, memory of the
// file's own, and from there to the start of the next batch. Compressed files
// are decompressed ahead, in blocks that become the memory of batches.
type file struct {
	name  string
	src   *source
	size  int64 // of the input as stored; -1 if not known
	dec   decoder
	lim   limits
	probs *problems

	carry []byte // bytes read but not decoded
	base  int64  // offset in the decompressed file of the first byte of carry; in fill, of the buffer
	count uint64 // packets found so far
	last  int64  // time of the last packet found
	mean  int    // size of the records in the last batch; 0 before the first
	ended bool
	err   error // of the input itself: what made it impossible to go on

	cut         error // of the decompressor, which ended the input early
	cutReported bool  // a problem with cut as its cause was added
}

// limits are Options in use.
type limits struct {
	batch     int
	maxRecord int
	window    int
	same      func(a, b string) bool
}

// decoder knows one file format.
type decoder interface {
	// decode appends to b the packets found in data[pos:], which is memory of b, and returns the position of
	// the first unused byte. At the end of the file it uses everything.
	decode(f *file, b *Batch, data []byte, pos int, eof bool) int
	// ifaces describes the interfaces met so far, by their index in a
	// section.
	ifaces() []Tap
	// highest returns the highest interface index of the packets so far.
	highest() int
	// place adds to a Place what is known, and goOn continues with that. place returns false within damage.
	place(*Place) bool
	goOn(f *file, r io.ReaderAt, at *Place) error
}

// openFile opens an input and recognises its format.
func openFile(name string, stdin io.Reader, lim limits, probs *problems, consumed *atomic.Int64) (*file, error) {
	src, size, err := openSource(name, stdin, lim.window, consumed)
	if err != nil {
		return nil, named(name, err)
	}
	return newFile(name, src, size, lim, probs)
}

// named puts the name of the input before an error that lacks it.
func named(name string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

func newFile(name string, src *source, size int64, lim limits, probs *problems) (*file, error) {
	f := &file{name: name, src: src, size: size, lim: lim, probs: probs}
	head := make([]byte, 16)
	n := 0
	for n < len(head) && f.dec == nil {
		m, err := f.readOnce(head[n:])
		n += m
		f.dec = recognise(head[:n], lim)
		if err != nil {
			if fail := src.raw.failure(); fail != nil {
				src.Close()
				return nil, named(name, fail)
			}
			if err != io.EOF {
				src.Close()
				return nil, fmt.Errorf("%s: %s: %w", name, src.kind, err)
			}
			break
		}
	}
	f.carry = head[:n]
	if f.dec == nil && isText(f.carry) {
		var err error
		if f.carry, err = f.recogniseText(f.carry); err != nil && err != io.EOF {
			src.Close()
			return nil, fmt.Errorf("%s: %s%w", name, strings.TrimPrefix(src.kind+": ", ": "), err)
		}
		n = len(f.carry)
	}
	if f.dec == nil {
		tar := !src.waits && f.isTar()
		src.Close()
		if n == 0 {
			return nil, fmt.Errorf("%s: %w", name, errEmpty)
		}
		return nil, &FormatError{File: name, Found: append([]byte(nil), f.carry...), Inside: src.kind, tar: tar}
	}
	if src.kind != "" && !src.waits { // a goroutine that waits for a writer could not be ended
		src.ahead = readAhead(src.r, lim.batch)
	}
	return f, nil
}

// recognise returns the decoder for a file that starts with head, or nil.
func recognise(head []byte, lim limits) decoder {
	if d := newPcapDecoder(head, lim); d != nil {
		return d
	}
	if d := newNgDecoder(head, lim); d != nil {
		return d
	}
	if d := newErfDecoder(head); d != nil {
		return d
	}
	return nil
}

// batchPackets is how many packets a batch has, about, where they are small.
const batchPackets = 512

// fill is Reader.Read for one file.
func (f *file) fill(b *Batch) error {
	b.Packets = b.Packets[:0]
	if f.ended {
		return f.end()
	}
	carried := len(f.carry)
	n, pos, eof := f.begin(b)
	used := 0
	for {
		start := pos
		pos = f.dec.decode(f, b, b.buf[:n], pos, eof)
		used += pos - start
		if eof {
			f.ended = true
			f.carry = nil
			f.base += int64(pos)
			if f.cut != nil && !f.cutReported {
				f.problem(f.count+1, f.base, f.cut, "%s data is damaged or cut short", f.src.kind)
			}
			if len(b.Packets) == 0 {
				return f.end()
			}
			return nil
		}
		// Each byte that is carried to another batch is paid for by a byte
		// that was decoded, so that the work is linear in the size of the
		// file whatever the records claim.
		if len(b.Packets) > 0 && used >= carried {
			break
		}
		n, pos, eof = f.more(b, n, pos)
	}
	f.carry = append(f.carry[:0], b.buf[pos:n]...)
	f.base += int64(pos)
	f.mean = used / len(b.Packets)
	return nil
}

// begin puts what was carried and what comes after it into the memory of b. What is to be decoded is b.buf[pos:n].
func (f *file) begin(b *Batch) (n, pos int, eof bool) {
	if f.src.ahead != nil {
		return f.takeOver(b)
	}
	carried := len(f.carry)
	want := max(f.want(), 2*carried)
	if c := cap(b.buf); c < want || c > 8*max(want, f.lim.batch) { // too small, or grown for a giant record
		b.buf = make([]byte, max(want, f.lim.batch))
	}
	b.buf = b.buf[:want]
	return f.more(b, copy(b.buf, f.carry), 0)
}

// more adds to b.buf[pos:n], which was not enough.
func (f *file) more(b *Batch, n, pos int) (int, int, bool) {
	if f.src.ahead != nil {
		return f.join(b, n, pos)
	}
	if n == len(b.buf) {
		n, pos = f.makeRoom(b, n, pos)
	}
	got, eof := f.read(b.buf[n:])
	return n + got, pos, eof
}

// want is how many bytes a batch should have: fewer if packets are small, since their decoded form takes room
// in the processor's cache, too.
func (f *file) want() int {
	if f.mean == 0 {
		return f.lim.batch
	}
	return min(f.lim.batch, max(f.lim.batch/4, f.mean*batchPackets))
}

// end returns why there are no more packets.
func (f *file) end() error {
	if f.err != nil {
		return f.err
	}
	return io.EOF
}

// makeRoom makes room to read after b.buf[pos:n], where n is the end of the buffer. The buffer doubles when
// more than half of it waits to be decoded: it grows as bytes arrive, never because of a length in a record.
func (f *file) makeRoom(b *Batch, n, pos int) (int, int) {
	old := b.buf
	switch {
	case pos < len(old)/2:
		b.buf = make([]byte, 2*len(old))
	case len(b.Packets) > 0: // they keep the old memory
		b.buf = make([]byte, len(old))
	}
	f.base += int64(pos)
	return copy(b.buf, old[pos:n]), 0
}

// read fills p, or reads what is available if the source may block. It reports whether the input has ended.
func (f *file) read(p []byte) (int, bool) {
	n := 0
	for n < len(p) {
		m, err := f.readOnce(p[n:])
		n += m
		if err != nil {
			f.over(err)
			return n, true
		}
		if f.src.waits {
			break
		}
	}
	return n, false
}

// over remembers why there is nothing more to read.
func (f *file) over(err error) {
	if err == io.EOF {
		return
	}
	// What is behind a wrong checksum may have been read ahead, and does not count.
	if fail := f.src.raw.failure(); fail != nil && err != zstd.ErrCRCMismatch {
		f.err = named(f.name, fail)
	} else {
		f.cut = err
	}
}

// readOnce reads at least one byte or returns an error.
func (f *file) readOnce(p []byte) (int, error) {
	for range 100 {
		n, err := f.src.r.Read(p)
		if n > 0 {
			return n, nil // a reader repeats its error
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, io.ErrNoProgress
}

// isTar reports whether a file that no format fits is an archive of tar: what it holds has the name at its
// beginning, and a mark behind that. What was read already is in carry.
func (f *file) isTar() bool {
	const at, mark = 257, "ustar"
	head := append(make([]byte, 0, at+len(mark)), f.carry[:min(len(f.carry), at+len(mark))]...)
	n := len(head)
	head = head[:cap(head)]
	_, err := io.ReadFull(f.src.r, head[n:])
	return err == nil && string(head[at:]) == mark
}

// problem adds a problem of this file.
func (f *file) problem(packet uint64, offset int64, err error, format string, args ...any) {
	f.probs.add(f.name, packet, offset, err, format, args...)
}

// cause returns the cause to report for a record that the end of the file cuts.
func (f *file) cause() error {
	if f.err != nil {
		return f.err
	}
	if f.cut != nil {
		f.cutReported = true
		return f.cut
	}
	return io.ErrUnexpectedEOF
}

func (f *file) Close() error {
	f.ended = true
	f.carry = nil
	return f.src.Close()
}
