package planner

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/rpcrdma/toolkit/internal/outfile"
)

// maxKnown bounds the pieces of data that are remembered, so that the same
// bytes are stored once.
const maxKnown = 1 << 16

// dataFile is the side file of captured data. It is made with the first data: many plans have
// none.
type dataFile struct {
	files *outfile.Files
	name  string
	f     *outfile.File // nil until there is something to write
	w     *bufio.Writer
	size  int64
	known map[[16]byte]int64
}

// begin makes the file.
func (d *dataFile) begin() (err error) {
	if d.f, err = d.files.Create(d.name); err == nil {
		d.w, d.known = bufio.NewWriterSize(d.f, 1<<18), map[[16]byte]int64{}
	}
	return err
}

// add stores data and returns its place.
func (d *dataFile) add(b []byte) (int64, string, error) {
	sum := sha256.Sum256(b)
	var key [16]byte
	copy(key[:], sum[:])
	hash := hex.EncodeToString(key[:])
	if at, ok := d.known[key]; ok {
		return at, hash, nil
	}
	if d.f == nil {
		if err := d.begin(); err != nil {
			return 0, hash, err
		}
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

// close ends writing; the file has no name yet.
func (d *dataFile) close() error {
	if d.f == nil {
		return nil
	}
	return errors.Join(d.w.Flush(), d.f.Close())
}
