package truth

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Values of Call.Outside.
const (
	OutsideCall  = "call"  // only the reply is in the capture
	OutsideReply = "reply" // only the call
	OutsideBoth  = "both"
)

// MarkOutside sets Call.Outside by searching the bytes of a capture for the
// start of each RPC-over-RDMA message: XID, version 1, credits. It needs no
// decoder, so that a call which a decoder missed is not mistaken for one that
// the capture lacks. A message counts as captured when its first 12 bytes lie
// together in the file.
//
// It does nothing unless the run was captured from the middle of a mount.
func (t *Truth) MarkOutside(capture string) error {
	if t.Scenario["CAPTURE_AT"] != "midstream" {
		return nil
	}
	f, err := os.Open(capture)
	if err != nil {
		return err
	}
	defer f.Close()
	var r io.Reader = f
	switch {
	case strings.HasSuffix(capture, ".gz"):
		if r, err = gzip.NewReader(f); err != nil {
			return err
		}
	case strings.HasSuffix(capture, ".zst"):
		z, err := zstd.NewReader(f)
		if err != nil {
			return err
		}
		defer z.Close()
		r = z
	}
	seen, err := scanHeaders(r, t.Calls)
	if err != nil {
		return err
	}
	if len(seen) == 0 && len(t.Calls) > 0 {
		// Then every missing transaction would be explained.
		return fmt.Errorf("%s: none of the %d RPCs of %s is in it", capture, len(t.Calls), t.Name)
	}
	for _, c := range t.Calls {
		c.Outside = ""
		switch s := seen[c.XID]; {
		case !s.call && !s.reply:
			c.Outside = OutsideBoth
		case !s.call:
			c.Outside = OutsideCall
		case !s.reply:
			c.Outside = OutsideReply
		}
	}
	return nil
}

// sight tells which messages of an XID were found.
type sight struct{ call, reply bool }

func scanHeaders(r io.Reader, calls []*Call) (map[XID]sight, error) {
	byXID := make(map[XID]*Call, len(calls))
	for _, c := range calls {
		byXID[c.XID] = c
	}
	seen := make(map[XID]sight)
	version := []byte{0, 0, 0, 1}
	const window, overlap = 1 << 20, 12
	br := bufio.NewReader(r)
	buf := make([]byte, 0, window)
	for {
		n, err := io.ReadFull(br, buf[len(buf):window])
		buf = buf[:len(buf)+n]
		for at := 4; ; at++ {
			i := bytes.Index(buf[min(at, len(buf)):], version)
			if i < 0 || at+i+8 > len(buf) {
				break
			}
			at += i
			c := byXID[XID(binary.BigEndian.Uint32(buf[at-4:]))]
			if c == nil {
				continue
			}
			credits := binary.BigEndian.Uint32(buf[at+4:])
			s := seen[c.XID]
			for _, send := range c.Sends {
				s.call = s.call || credits == send.Requested
				s.reply = s.reply || credits == send.Granted
			}
			seen[c.XID] = s
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return seen, nil
		}
		if err != nil {
			return nil, err
		}
		buf = buf[:copy(buf, buf[len(buf)-overlap:])]
	}
}
