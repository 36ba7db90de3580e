package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/rpcrdma/toolkit/analyze/journal"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/internal/units"
)

// journalSocket is where the journal takes entries by its native protocol.
const journalSocket = "/run/systemd/journal/socket"

// journalPatience is how long the journal may be busy before an entry is given up.
const journalPatience = 5 * time.Second

// journalPrinter sends an entry for each transaction; it writes nothing to standard output.
type journalPrinter struct {
	e        *journal.Encoder
	conn     net.Conn
	socket   string
	notes    *cli.Problems
	patience time.Duration

	entry  []byte
	sent   uint64
	lost   uint64 // all that were not taken
	row    uint64 // of these, those since the last one that was taken
	failed error  // nothing can be sent any more
}

// journal connects to the journal. That happens before privileges and files are given up: the process keeps
// this one connection.
func (o *dumpOptions) journal() (*journalPrinter, error) {
	for _, n := range o.fields {
		if _, err := cli.Field(n); err != nil {
			return nil, err
		}
	}
	e, err := journal.New(o.fields)
	if err != nil { // the name is too long
		return nil, &cli.UsageError{Err: fmt.Errorf("-e %w", err)}
	}
	// The journal has the time of the entry, RPCRDMA_TIME that of the packet.
	e.List = text.Lister{Clock: text.Clock{Format: text.TimeFormat{Style: text.TimeNone}}, Width: o.width}
	if o.time.count > 0 || o.time.word != "" {
		e.List.Clock.Format = o.time.format
	}
	if o.verbose > 0 {
		e.Tree = &text.Tree{Level: o.verbose, Width: o.width}
	}
	conn, err := net.Dial("unixgram", o.socket)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return &journalPrinter{e: e, conn: conn, socket: o.socket, patience: journalPatience}, nil
}

func (p *journalPrinter) close() { _ = p.conn.Close() }

func (p *journalPrinter) begin(b []byte) []byte  { return b }
func (p *journalPrinter) finish(b []byte) []byte { return b }

func (p *journalPrinter) print(b []byte, v *rpc.View) []byte {
	p.entry = p.e.Append(p.entry[:0], v)
	if p.failed != nil {
		p.lost++
		return b
	}
	// After an entry that was given up, the next one gets no time, or a journal that hangs would hold up the
	// capture again and again.
	wait := p.patience
	if p.row > 0 {
		wait = time.Millisecond
	}
	_ = p.conn.SetWriteDeadline(time.Now().Add(wait))
	_, err := p.conn.Write(p.entry)
	switch {
	case err == nil:
		if p.row > 0 {
			p.notes.Printf("the journal takes entries again; it did not take %s", units.Plural(p.row, "transaction"))
			p.row = 0
		}
		p.sent++
		return b
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.EMSGSIZE):
		if p.row == 0 {
			p.notes.Printf("%s does not take an entry of %d bytes (%v): transactions are being lost", p.socket, len(p.entry), err)
		}
	default:
		p.failed = err // it is gone, and the sandbox allows no other connection
	}
	p.lost++
	p.row++
	return b
}

// result says what was sent; an error if that is not everything.
func (p *journalPrinter) result() error {
	switch {
	case p.failed != nil:
		return fmt.Errorf("journal: %w; %d sent, %d not; start again to connect again", p.failed, p.sent, p.lost)
	case p.lost > 0:
		return fmt.Errorf("journal: %s did not take %s; %d sent", p.socket, units.Plural(p.lost, "transaction"), p.sent)
	}
	p.notes.Printf("%s sent to the journal", units.Plural(p.sent, "transaction"))
	return nil
}
