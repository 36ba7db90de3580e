package capture

import (
	"io"
	"os"
)

const (
	// copiedBlocks is how many blocks are copied before they are needed, however many goroutines copy.
	copiedBlocks = 9
	// maxCopiers is how many goroutines can work on so many blocks.
	maxCopiers = copiedBlocks / together
)

// copyAhead lets goroutines copy a file from the page cache, each at places of its own, in blocks of size bytes. It returns nil where
// that is not the same as reading on, or not worth it: for a file that others may move in, one that is compressed or special, and one
// of a few blocks; length is -1 if the file is not regular. r is not to be read any more.
func (s *source) copyAhead(copiers, size int, length int64) *ahead {
	f, ours := s.closer.(*os.File)
	if !ours || s.kind != "" || length/int64(size) < copiedBlocks {
		return nil
	}
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil { // a file that can only be read on, as some file systems have
		return nil
	}
	return (&ahead{from: f, file: s.raw, at: at, cap: size, blocks: copiedBlocks}).start(copiers)
}

// copied takes note of a block that was copied, when all before it were taken. If the file ended within it, more may have been
// appended since: those before it may have been copied later.
func (a *ahead) copied(k *block) {
	if k.err == io.EOF {
		n, err := a.from.ReadAt(k.buf[len(k.buf):headroom+k.want], k.at+int64(len(k.data())))
		k.buf, k.err = k.buf[:len(k.buf)+n], err
	}
	a.file.note(len(k.data()), k.err)
}
