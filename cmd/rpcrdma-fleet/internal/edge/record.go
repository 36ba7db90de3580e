package edge

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/live"
)

// Record is a line on the pipe from the observer: one of its fields.
type Record struct {
	Summary json.RawMessage `json:"summary,omitempty"` // a live.Summary
	Part    *Part           `json:"part,omitempty"`
	Note    string          `json:"note,omitempty"`
	Damaged bool            `json:"damaged,omitempty"` // the input was truncated or malformed
}

// maxLine is how long a line may be.
const maxLine = live.MaxSummary + 64<<10

// Records passes on what an observer writes. The observer reads packets of strangers,
// so it is trusted no more than they are.
func Records(r io.Reader, take func(*Record) error) error {
	b := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := b.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("the observer has written a line of more than %d bytes", maxLine)
		case err == io.EOF && len(line) == 0:
			return nil
		case err != nil && err != io.EOF:
			return err
		case err == io.EOF:
			return errors.New("the last line of the observer is incomplete")
		}
		var x Record
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&x); err != nil {
			return fmt.Errorf("the observer has written a malformed line: %w", err)
		}
		if err := take(&x); err != nil {
			return err
		}
	}
}
