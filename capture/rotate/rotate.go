// Package rotate writes captures to a file, or to a series of files of which
// the newest are kept.
package rotate

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/internal/outfile"
)

// Options say what files are written. Name must be set.
type Options struct {
	// Name of the file; "-" is Stdout. Its extension selects the format: pcap for .pcap, pcapng for
	// everything else; a further .gz or .zst compresses.
	Name   string
	Stdout io.Writer // nil means os.Stdout
	// Size is the most bytes of a file, before compression, not counting the statistics at its end; a longer
	// packet has its own file. 0 is no limit.
	Size int64
	// Every is the time in nanoseconds of the capture after which a file
	// ends, counted from the first packet. 0 is no limit.
	Every int64
	// Keep is how many files are kept; the oldest of this series are removed.
	// 0 keeps all.
	Keep int
	// Location is the time zone of file names; nil means local time.
	Location *time.Location
	// Writer says how they are written. Format is found by the name.
	Writer capture.WriterOptions
	// Statistics, if set, gives the counters to write at the end of a file.
	Statistics func() []Statistics
	// Files knows the files being read, which must not be written; nil: none.
	Files *outfile.Files
}

// Statistics are the counters of a tap.
type Statistics struct {
	Tap  uint16
	Link capture.LinkType
	capture.Statistics
}

// Writer writes packets to the files. With Size or Every, the files of a series have numbers in their names,
// before the extension: trace-00001.pcapng. With Every, a name with conversions of strftime, as
// trace-%H%M%S.pcap, names files by the local time of their first packet instead; a name that the series had
// already gets a number as well.
//
// A file begins with a packet: while there is none, no file is opened, except for the one of a capture
// without any.
//
// Files are written under their names, so that they can be read while they grow. After an error, such as that
// of a full disk, the last one is cut after its last whole packet, a compressed one after its last whole frame (zstd) or member (gzip).
type Writer struct {
	opt    Options
	suffix string // .pcapng.zst
	stem   string
	series bool
	dated  bool

	file    *output
	w       *capture.Writer
	kept    []*outfile.File // of the series that are there still
	used    map[string]int
	count   int    // files so far
	packets int    // in the file
	start   int64  // of the time of the file
	begun   bool   // start is set
	bytes   int64  // of the files that are closed
	stored  uint64 // packets in them
	cut     bool   // standard output is compressed, and was not ended
	err     error
}

// New checks the options. A name that cannot be written fails with the first packet, except for a single
// file, which is opened at once.
func New(opt Options) (*Writer, error) {
	w := &Writer{opt: opt, series: opt.Size > 0 || opt.Every > 0, used: make(map[string]int)}
	if opt.Name == "" {
		return nil, errors.New("no file to write named")
	}
	if opt.Size < 0 || opt.Every < 0 || opt.Keep < 0 {
		return nil, errors.New("sizes, times and counts of files are not negative")
	}
	if w.opt.Location == nil {
		w.opt.Location = time.Local
	}
	w.stem, w.suffix = split(opt.Name)
	w.opt.Writer.Format = capture.Pcapng
	if strings.HasPrefix(w.suffix, ".pcap") && !strings.HasPrefix(w.suffix, ".pcapng") {
		w.opt.Writer.Format = capture.Pcap
	}
	if opt.Keep > 0 && !w.series {
		return nil, errors.New("a number of files needs a size or a time for each")
	}
	if opt.Name == "-" && w.series {
		return nil, errors.New("standard output is one file: it cannot be rotated")
	}
	if opt.Every > 0 && strings.Contains(opt.Name, "%") {
		w.dated = true
		if err := checkTime(opt.Name); err != nil {
			return nil, err
		}
	}
	if !w.series {
		return w, w.open(0)
	}
	return w, nil
}

// split cuts the extensions off a name that say how to write it.
func split(name string) (stem, suffix string) {
	stem = name
	for _, list := range [][]string{{".gz", ".zst"}, {".pcapng", ".pcap"}} {
		for _, s := range list {
			if rest, ok := strings.CutSuffix(stem, s); ok && rest != "" && !strings.HasSuffix(rest, "/") {
				stem, suffix = rest, s+suffix
				break
			}
		}
	}
	return stem, suffix
}

// frameSize is after how many bytes, before compression, a compressed file begins a new frame (zstd) or member (gzip).
const frameSize = 256 << 10

// compressor is a writer of frames or members.
type compressor interface {
	io.WriteCloser
	Reset(io.Writer)
}

// output is an open file with its compressor.
type output struct {
	f *outfile.File // nil for standard output
	z compressor    // nil: it is not compressed

	out   counted
	begun int64 // where the frame under way begins, before compression
	// What the whole frames take and hold.
	end, bytes int64
	packets    uint64
}

// counted counts what is written.
type counted struct {
	io.Writer
	n int64
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.n += int64(n)
	return n, err
}

// endFrame ends the frame under way, with all packets so far.
func (o *output) endFrame(w *capture.Writer) error {
	if err := w.Flush(); err != nil {
		return err
	}
	if err := o.z.Close(); err != nil {
		return err
	}
	o.z.Reset(&o.out)
	o.begun, o.end = w.Written(), o.out.n
	o.packets, o.bytes = w.Stored()
	return nil
}

func (w *Writer) open(at int64) error {
	name := w.opt.Name
	if w.series {
		name = w.next(at)
	}
	o := &output{}
	out := w.opt.Stdout
	if name != "-" {
		f, err := w.opt.Files.Stream(name)
		if err != nil {
			w.err = err
			return err
		}
		o.f, out = f, f
	} else if out == nil {
		out = os.Stdout
	}
	o.out.Writer = out
	switch {
	case strings.HasSuffix(w.suffix, ".gz"):
		z, _ := gzip.NewWriterLevel(&o.out, gzip.BestSpeed) // the level is valid
		o.z, out = z, z
	case strings.HasSuffix(w.suffix, ".zst"):
		z, err := zstd.NewWriter(&o.out, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
		if err != nil {
			w.err = err
			return err
		}
		o.z, out = z, z
	}
	w.file, w.w = o, capture.NewWriter(out, w.opt.Writer)
	w.count++
	w.packets = 0
	if !w.series || w.opt.Keep == 0 {
		return nil
	}
	w.kept = append(w.kept, o.f)
	for len(w.kept) > w.opt.Keep {
		if err := w.kept[0].Remove(); err != nil && !errors.Is(err, os.ErrNotExist) {
			w.err = err
			return err
		}
		delete(w.used, w.kept[0].Name())
		w.kept = w.kept[1:]
	}
	return nil
}

// next is the name of the next file.
func (w *Writer) next(at int64) string {
	if !w.dated {
		return fmt.Sprintf("%s-%05d%s", w.stem, w.count+1, w.suffix)
	}
	name := formatTime(w.opt.Name, time.Unix(0, at).In(w.opt.Location))
	n := w.used[name]
	if w.opt.Keep > 0 || len(w.used) < maxUsed {
		w.used[name] = n + 1
	}
	if n > 0 {
		stem, suffix := split(name)
		return fmt.Sprintf("%s-%05d%s", stem, n+1, suffix)
	}
	return name
}

// maxUsed bounds the names that are remembered where all files are kept.
const maxUsed = 1 << 16

// overhead is the maximum number of bytes that a packet takes in a file in addition to its data.
const overhead = 36

// disorder is how much earlier than others, in nanoseconds, a packet may be stamped without a clock that was set back: several
// interfaces, and queues of one, deliver packets a little out of order.
const disorder = 10e9

// Write adds a packet, in a new file if it is time for one.
func (w *Writer) Write(p *capture.Packet) error {
	if w.err != nil {
		return w.err
	}
	if !w.begun {
		w.begun, w.start = true, p.Time
	}
	late := w.opt.Every > 0 && p.Time-w.start >= w.opt.Every
	// If the clock was set back, nobody knows how long it takes to catch up.
	early := w.opt.Every > 0 && w.start-p.Time > min(w.opt.Every, disorder)
	if w.series && (w.file == nil || w.packets > 0 &&
		(late || early || w.opt.Size > 0 && w.w.Written()+int64(len(p.Data))+overhead > w.opt.Size)) {
		if late { // periods follow each other from the first packet, however long nothing comes
			w.start += (p.Time - w.start) / w.opt.Every * w.opt.Every
		}
		if early {
			w.start = p.Time
		}
		if err := w.closeFile(); err != nil {
			return err
		}
		if err := w.open(p.Time); err != nil {
			return err
		}
	}
	w.packets++
	w.err = w.w.Write(p)
	if o := w.file; w.err == nil && o.z != nil && w.w.Written()-o.begun >= frameSize {
		w.err = o.endFrame(w.w)
	}
	return w.err
}

// Flush writes what is buffered, so that others can read it. A compressed file is written when enough data
// has accumulated.
func (w *Writer) Flush() error {
	if w.err == nil && w.file != nil && w.file.z == nil {
		w.err = w.w.Flush()
	}
	return w.err
}

// Close ends the last file.
func (w *Writer) Close() error {
	if w.file == nil && w.err == nil && w.count == 0 {
		if err := w.open(time.Now().UnixNano()); err != nil {
			return err
		}
	}
	err := w.err
	if e := w.closeFile(); err == nil {
		err = e
	}
	if w.err == nil {
		w.err = os.ErrClosed
	}
	return err
}

func (w *Writer) closeFile() error {
	o := w.file
	if o == nil {
		return nil
	}
	w.file = nil
	var err error
	if w.opt.Statistics != nil {
		for _, s := range w.opt.Statistics() {
			err = errors.Join(err, w.w.WriteStatistics(s.Tap, s.Link, s.Statistics))
		}
	}
	err = errors.Join(err, w.w.Flush())
	if o.z != nil {
		err = errors.Join(err, o.z.Close())
	}
	packets, bytes := w.w.Stored()
	end := bytes
	failed := w.err != nil || err != nil
	if failed && o.z != nil {
		packets, bytes, end = o.packets, o.bytes, o.end
		w.cut = o.f == nil
	}
	if failed && o.f != nil {
		err = errors.Join(err, o.f.Truncate(end))
	}
	w.stored += packets
	w.bytes += bytes
	if o.f != nil {
		err = errors.Join(err, o.f.Close())
		if w.series {
			o.f.Forget() // a series keeps its names apart by itself
		}
	}
	if err != nil && w.err == nil {
		w.err = err
	}
	return err
}

// Count is what the files hold.
type Count struct {
	Files   int
	Packets uint64 // that can be read
	Bytes   int64  // before compression
	// Cut means that standard output is compressed, and that an error has ended it within a frame. Neither Packets nor Bytes counts what
	// is in that.
	Cut bool
}

// Count returns what was written. While a file is open, buffered data is not included; after Close it is what
// the stream or the disk accepted, even if there was an error.
func (w *Writer) Count() Count {
	c := Count{Files: w.count, Packets: w.stored, Bytes: w.bytes, Cut: w.cut}
	if w.file != nil {
		packets, bytes := w.w.Stored()
		c.Packets += packets
		c.Bytes += bytes
	}
	return c
}
