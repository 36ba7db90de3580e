package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// schema is what a line has to say of itself.
const schema = "rpcrdma.transaction/1"

// maxLine bounds a line, which is a transaction with its segments and file names.
const maxLine = 16 << 20

// record is a line of ndjson, as docs/reference/schema.md describes it. The typed fields are the ones that spans and metrics are made of;
// values has all keys.
type record struct {
	Schema        string    `json:"schema"`
	Time          time.Time `json:"time"`
	XID           uint32    `json:"xid"`
	ConnectionKey string    `json:"connection_key"`
	Fabric        string    `json:"fabric"`
	Server        string    `json:"server"`
	Direction     string    `json:"direction"`
	Program       string    `json:"program"`
	Procedure     string    `json:"procedure"`
	Group         string    `json:"operation_group"`
	Status        string    `json:"status"`
	ReadBytes     int64     `json:"rdma_read_bytes"`
	WriteBytes    int64     `json:"rdma_write_bytes"`
	Retransmits   int       `json:"retransmits"`
	State         string    `json:"state"`
	Latency       *latency  `json:"latency_ns"`

	values map[string]any
}

// parse reads a line.
func parse(text []byte) (*record, error) {
	r := &record{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, err
	}
	if r.Schema != schema {
		return nil, fmt.Errorf("its schema is %.60q, not %s", r.Schema, schema)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return r, d.Decode(&r.values)
}

// latency has the phases, in nanoseconds.
type latency struct {
	Call   int64 `json:"call_transfer"`
	Pull   int64 `json:"argument_pull"`
	Server int64 `json:"server"`
	Push   int64 `json:"result_push"`
	Reply  int64 `json:"reply_transfer"`
	Total  int64 `json:"total"`
}

// phases are the five that sum to the total, in their order.
func (l *latency) phases() []phase {
	return []phase{{"call_transfer", l.Call}, {"argument_pull", l.Pull}, {"server", l.Server}, {"result_push", l.Push}, {"reply_transfer", l.Reply}}
}

type phase struct {
	name string
	ns   int64
}

// failed tells whether the transaction has an error: a status that is not the program's success, or no reply.
func (r *record) failed() bool {
	switch {
	case r.State == "no_reply":
		return true
	case r.Status == "", r.Status == "SUCCESS", r.Status == "stat_succ", strings.HasSuffix(r.Status, "_OK"), strings.HasSuffix(r.Status, "GRANTED"):
		return false
	}
	return true
}

// counts says what the input had.
type counts struct{ transactions, skipped uint64 }

// maxTold bounds how many lines are complained of.
const maxTold = 10

// line is what readLine returned.
type line struct {
	text []byte
	err  error
}

// lines reads the lines of an input, which may wait for ever, until the channel done is closed.
func lines(in io.Reader, done <-chan struct{}) <-chan line {
	to := make(chan line)
	go func() {
		b := bufio.NewReaderSize(in, 1<<20)
		for {
			text, err := readLine(b)
			select {
			case to <- line{text, err}:
			case <-done:
				return
			}
			if err != nil && !errors.Is(err, errLong) && len(text) == 0 {
				return
			}
		}
	}()
	return to
}

// errInterrupted says that the input went on, and nobody wanted more of it.
var errInterrupted = errors.New("interrupted")

// scan reads lines and passes transactions on. Other lines are counted; bad hears of the first of them. If the context ends, the
// input has so much time to end, too: who writes it may have been told at the same time, and still have something to say.
func scan(ctx context.Context, in io.Reader, grace time.Duration, n *counts, bad func(line uint64, err error), each func(context.Context, *record)) error {
	done := make(chan struct{})
	defer close(done)
	from := lines(in, done)
	stopped := ctx.Done()
	ctx = context.WithoutCancel(ctx) // what was read is sent
	var enough <-chan time.Time
	told := 0
	for number := uint64(1); ; {
		var text []byte
		var err error
		select {
		case l := <-from:
			text, err = l.text, l.err
		case <-stopped:
			stopped, enough = nil, time.After(grace)
			continue
		case <-enough:
			return errInterrupted
		}
		at := number
		number++
		if err != nil && !errors.Is(err, errLong) && len(text) == 0 {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if len(strings.TrimSpace(string(text))) == 0 && err == nil {
			continue
		}
		var r *record
		if err == nil || errors.Is(err, io.EOF) {
			r, err = parse(text)
		}
		if err != nil {
			n.skipped++
			if told++; told <= maxTold {
				bad(at, err)
			}
			continue
		}
		n.transactions++
		each(ctx, r)
	}
}

var errLong = fmt.Errorf("the line is longer than %d bytes", maxLine)

// readLine reads a line of at most maxLine bytes; the rest of a longer one is skipped.
func readLine(b *bufio.Reader) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := b.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxLine; !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long && (err == nil || errors.Is(err, io.EOF)):
			return nil, errLong
		}
		return line, err
	}
}
