//go:build unix

package main

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/units"
)

// listenJournal stands in for the journal.
func listenJournal(t *testing.T) (*net.UnixConn, string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "socket")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, name
}

func toJournal(args ...string) (code int, out, diag string) {
	var o, d bytes.Buffer
	code = run(append([]string{"-T", "journal"}, args...), &cli.Streams{In: strings.NewReader(""), Out: &o, Err: &d})
	return code, o.String(), d.String()
}

// Each transaction is one datagram; analyze/journal checks what is in it.
func TestJournal(t *testing.T) {
	l, socket := listenJournal(t)
	got := make(chan []string)
	go func() {
		var list []string
		b := make([]byte, 1<<20)
		for {
			n, err := l.Read(b)
			if err != nil || n == 0 {
				got <- list
				return
			}
			list = append(list, string(b[:n]))
		}
	}()
	code, out, diag := toJournal("--journal", socket, "-v", "-e", "operations.op", "-Y", "op == OPEN", filepath.Join(samples, "rocev2-nfs41-recall.pcap"))
	end, err := net.Dial("unixgram", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	if _, err := end.Write(nil); err != nil { // behind all others
		t.Fatal(err)
	}
	list := <-got
	if code != cli.ExitOK || out != "" || len(list) == 0 || !strings.Contains(diag, units.Plural(len(list), "transaction")+" sent to the journal") {
		t.Fatalf("exit code %d, %d entries, %q, %q", code, len(list), out, diag)
	}
	for _, e := range list {
		if !strings.HasPrefix(e, "MESSAGE\n") || !strings.Contains(e, "\nRPCRDMA_OPERATIONS_OP=OPEN\n") || !strings.Contains(e, "\nRPCRDMA_CLIENT=192.0.2.") {
			t.Errorf("%q", e)
		}
	}
}

// printAll gives the transactions of a sample to a printer, and returns how many there are.
func printAll(t *testing.T, p printer) (n uint64) {
	t.Helper()
	r, err := capture.Open([]string{filepath.Join(samples, "rocev2-nfs41-recall.pcap")}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	v := rpc.View{Names: &rpc.Names{}}
	d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
		v.Set(tx)
		p.print(nil, &v)
		n++
	})
	if err := d.Run(r); err != nil {
		t.Fatal(err)
	}
	return n
}

// fill prints until the queue of the socket, whose length depends on the system, is full.
func fill(t *testing.T, p *journalPrinter) (n uint64) {
	for i := 0; i < 50 && p.lost == 0; i++ {
		n += printAll(t, p)
	}
	return n
}

// What the journal does not take is counted, and the command fails.
func TestJournalLost(t *testing.T) {
	_, socket := listenJournal(t) // reads nothing: its queue fills up
	o := &dumpOptions{socket: socket}
	p, err := o.journal()
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	var diag bytes.Buffer
	p.notes, p.patience = cli.NewProblems("rpcrdma-dump", &diag), 20*time.Millisecond
	total := fill(t, p)
	if p.lost == 0 || p.sent == 0 || p.sent+p.lost != total {
		t.Errorf("%d sent, %d lost of %d", p.sent, p.lost, total)
	}
	// An entry may be late on a busy machine, and the next one be taken: then the loss begins once more.
	if err := p.result(); err == nil || !strings.Contains(err.Error(), "did not take") ||
		strings.Count(diag.String(), "are being lost") != 1+strings.Count(diag.String(), "takes entries again") {
		t.Errorf("%v; %q", err, &diag)
	}
}

// A journal that takes entries again gets them, and the gap is reported.
func TestJournalAgain(t *testing.T) {
	l, socket := listenJournal(t)
	o := &dumpOptions{socket: socket}
	p, err := o.journal()
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	var diag bytes.Buffer
	p.notes, p.patience = cli.NewProblems("rpcrdma-dump", &diag), 20*time.Millisecond
	fill(t, p)
	if p.lost == 0 {
		t.Fatal("nothing lost")
	}
	go func() { _, _ = io.Copy(io.Discard, l) }()
	deadline := time.Now().Add(time.Minute)
	for p.row > 0 && time.Now().Before(deadline) {
		printAll(t, p)
	}
	if !strings.Contains(diag.String(), "takes entries again; it did not take ") {
		t.Errorf("%q", &diag)
	}
}

// A journal that goes away ends the command, since the sandbox allows no other connection.
func TestJournalGone(t *testing.T) {
	l, socket := listenJournal(t)
	o := &dumpOptions{socket: socket}
	p, err := o.journal()
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	p.notes = cli.NewProblems("rpcrdma-dump", io.Discard)
	l.Close()
	total := printAll(t, p)
	if err := p.result(); err == nil || p.sent != 0 || p.lost != total || !strings.Contains(err.Error(), "start again") {
		t.Errorf("%d sent, %d lost of %d: %v", p.sent, p.lost, total, err)
	}
	code, _, diag := toJournal("--journal", socket, filepath.Join(samples, "rocev2-nfs41-recall.pcap"))
	if code != cli.ExitFailure || !strings.Contains(diag, socket) {
		t.Errorf("exit code %d, %q", code, diag)
	}
}

func TestJournalUsage(t *testing.T) {
	for _, args := range [][]string{
		{"-T", "journal", "-x", "f"},
		{"-T", "journal", "-q", "f"},
		{"-T", "journal", "--resolve", "f"},
		{"-T", "journal", "-E", "header=y", "f"},
		{"-T", "journal", "-e", "nothing", "f"},
		{"-T", "text", "--journal", "/nowhere", "f"},
	} {
		var out, diag bytes.Buffer
		if code := run(args, &cli.Streams{In: strings.NewReader(""), Out: &out, Err: &diag}); code != cli.ExitUsage {
			t.Errorf("%q: exit code %d, %q", args, code, &diag)
		}
	}
	if _, err := os.Stat(journalSocket); errors.Is(err, os.ErrNotExist) {
		if code, _, diag := toJournal(filepath.Join(samples, "rocev2-nfs41-recall.pcap")); code != cli.ExitFailure || !strings.Contains(diag, journalSocket) {
			t.Errorf("exit code %d, %q", code, diag)
		}
	}
}
