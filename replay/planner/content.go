package planner

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sort"

	"github.com/rpcrdma/toolkit/internal/outfile"
)

// maxKnown bounds the pieces of data that are remembered, so that the same
// bytes are stored once.
const maxKnown = 1 << 16

// dataFile is the side file of captured data.
type dataFile struct {
	f     *outfile.File
	w     *bufio.Writer
	size  int64
	known map[[16]byte]int64
}

func newDataFile(files *outfile.Files, name string) (*dataFile, error) {
	f, err := files.Create(name)
	if err != nil {
		return nil, err
	}
	return &dataFile{f: f, w: bufio.NewWriterSize(f, 1<<18), known: map[[16]byte]int64{}}, nil
}

// add stores data and returns where.
func (d *dataFile) add(b []byte) (int64, string, error) {
	sum := sha256.Sum256(b)
	var key [16]byte
	copy(key[:], sum[:])
	hash := hex.EncodeToString(key[:])
	if at, ok := d.known[key]; ok {
		return at, hash, nil
	}
	at := d.size
	if _, err := d.w.Write(b); err != nil {
		return 0, hash, err
	}
	d.size += int64(len(b))
	if len(d.known) >= maxKnown {
		clear(d.known)
	}
	d.known[key] = at
	return at, hash, nil
}

// close ends the writing; the file has no name yet.
func (d *dataFile) close() error { return errors.Join(d.w.Flush(), d.f.Close()) }

// span is a range of a file.
type span struct{ from, to uint64 }

// spans are ranges that do not touch, in order.
type spans []span

// maxSpans bounds them: beyond, neighbours are joined.
const maxSpans = 4096

func (s *spans) add(from, to uint64) {
	if from >= to {
		return
	}
	l := *s
	i := sort.Search(len(l), func(i int) bool { return l[i].to >= from })
	j := i
	for j < len(l) && l[j].from <= to {
		from, to = min(from, l[j].from), max(to, l[j].to)
		j++
	}
	if j > i {
		l[i] = span{from, to}
		*s = append(l[:i+1], l[j:]...)
		return
	}
	l = append(l, span{})
	copy(l[i+1:], l[i:])
	l[i] = span{from, to}
	if len(l) > maxSpans {
		i = max(i, 1)
		l[i-1].to = l[i].to
		l = append(l[:i], l[i+1:]...)
	}
	*s = l
}

// gaps calls f for each part of [from, to) that is in none of the spans.
func (s spans) gaps(from, to uint64, f func(from, to uint64)) {
	i := sort.Search(len(s), func(i int) bool { return s[i].to > from })
	for ; i < len(s) && s[i].from < to; i++ {
		if s[i].from > from {
			f(from, s[i].from)
		}
		from = s[i].to
	}
	if from < to {
		f(from, to)
	}
}
