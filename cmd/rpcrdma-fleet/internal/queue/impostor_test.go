package queue

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/testtools/natstest"
)

// impostor listens where a NATS server is expected. It tells what clients have said to it, in the clear or within TLS.
func impostor(t *testing.T, speak func(c net.Conn, r *bufio.Reader)) (address string, said func() string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	heard := make(chan string, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				defer time.AfterFunc(10*time.Second, func() { c.Close() }).Stop()
				var b strings.Builder
				speak(c, bufio.NewReader(io.TeeReader(c, &b)))
				heard <- b.String()
			}()
		}
	}()
	t.Cleanup(func() { l.Close() })
	return l.Addr().String(), func() (all string) {
		for {
			select {
			case s := <-heard:
				all += s
			default:
				return all
			}
		}
	}
}

// TestEndlessLine: a first line without an end is read up to a number of bytes, however fast it comes.
func TestEndlessLine(t *testing.T) {
	var said atomic.Int64
	address, _ := impostor(t, func(c net.Conn, _ *bufio.Reader) {
		for b := []byte("INFO " + strings.Repeat("x", 1<<16)); ; {
			n, err := c.Write(b)
			if said.Add(int64(n)); err != nil {
				return
			}
		}
	})
	_, err := Dial(Address{Servers: "nats://" + address}, Reader, "test", func(string, ...any) {})
	const buffers = 16 << 20 // of the two sockets
	if n := said.Load(); err == nil || !strings.Contains(err.Error(), "first line") || n > maxInfo+buffers {
		t.Errorf("%d bytes were taken: %v", n, err)
	}
}

// TestImpostor: whatever answers in place of a NATS server, Dial ends soon with an error that is short, and no password is said to who has no
// certificate for the name. Not tried is a message that is said to have gigabytes: the client of NATS makes room for it (SECURITY.md).
func TestImpostor(t *testing.T) {
	dir := t.TempDir()
	ours, theirs := natstest.NewCA(t, dir, "ours"), natstest.NewCA(t, dir, "theirs")
	ours.Issue(t, dir, "late", -time.Minute)
	theirs.Issue(t, dir, "other", time.Hour)
	ours.Issue(t, dir, "good", time.Hour)
	certificate := func(name string) tls.Certificate {
		c, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".pem"), filepath.Join(dir, name+"-key.pem"))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	const first = `INFO {"server_id":"x","version":"2.12.0","proto":1,"max_payload":1048576,%s}` + "\r\n"
	say := func(text string) func(net.Conn, *bufio.Reader) {
		return func(c net.Conn, r *bufio.Reader) {
			if _, err := io.WriteString(c, text); err == nil {
				_, _ = io.Copy(io.Discard, r)
			}
		}
	}
	// then says something, hears a line, and says something else.
	then := func(hello, text string) func(net.Conn, *bufio.Reader) {
		return func(c net.Conn, r *bufio.Reader) {
			if _, err := io.WriteString(c, hello); err != nil {
				return
			}
			if _, err := r.ReadString('\n'); err == nil {
				_, _ = io.WriteString(c, text)
			}
		}
	}
	secure := func(config *tls.Config) func(net.Conn, *bufio.Reader) {
		return func(c net.Conn, r *bufio.Reader) {
			if _, err := fmt.Fprintf(c, first, `"tls_required":true`); err != nil {
				return
			}
			s := tls.Server(c, config)
			if err := s.Handshake(); err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, s)
		}
	}
	plain := fmt.Sprintf(first, `"headers":true`)
	for _, x := range []struct {
		name   string
		secure bool // the client wants TLS, and has a certificate authority
		speak  func(net.Conn, *bufio.Reader)
	}{
		{"closes", false, func(net.Conn, *bufio.Reader) {}},
		{"noise", false, say("\x00\xff\x1b[31m\r\n")},
		{"another protocol", false, say("SSH-2.0-OpenSSH_9.2\r\n")},
		{"HTTP", false, say("HTTP/1.1 400 Bad Request\r\n\r\n")},
		{"a line without end", false, func(c net.Conn, _ *bufio.Reader) {
			for b := []byte("INFO " + strings.Repeat("x", 1<<16)); ; {
				if _, err := c.Write(b); err != nil {
					return
				}
			}
		}},
		{"no JSON", false, say("INFO {\r\n")},
		{"deep JSON", false, say("INFO " + strings.Repeat("[", 5000) + "\r\n")},
		{"numbers that are too large", false, say(`INFO {"max_payload":1e400,"port":-99999999999999999999}` + "\r\n")},
		{"an error at once", false, say("-ERR '\x1b[2J\u202eowned'\r\n")},
		{"an error that controls the terminal", false, then(plain, "-ERR '\x1b[2J\u202eowned'\r\n")},
		{"a long error", false, then(plain, "-ERR '"+strings.Repeat("x", 100000)+"'\r\n")},
		{"pings in place of an answer", false, then(plain, "PING\r\nPING\r\n-ERR 'x'\r\n")},
		{"closes after the name", false, then(plain, "")},
		{"wants a nonce signed", false, say(fmt.Sprintf(first, `"auth_required":true,"nonce":"`+strings.Repeat("n", 60000)+`"`) + "-ERR 'Authorization Violation'\r\n")},
		{"no TLS", true, say(plain)},
		{"TLS is available, and not spoken", true, say(fmt.Sprintf(first, `"tls_available":true`) + "+OK\r\nPONG\r\n")},
		{"an unknown authority", true, secure(&tls.Config{Certificates: []tls.Certificate{certificate("other")}})},
		{"an expired certificate", true, secure(&tls.Config{Certificates: []tls.Certificate{certificate("late")}})},
		{"an old version of TLS", true, secure(&tls.Config{Certificates: []tls.Certificate{certificate("good")}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})}, //nolint:gosec // it must be refused
		{"no certificate", true, secure(&tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, errors.New("none") }})},
		{"an alert", true, say(fmt.Sprintf(first, `"tls_required":true`) + "\x15\x03\x03\x00\x02\x02\x28")},
		{"plain text where TLS begins", true, say(fmt.Sprintf(first, `"tls_required":true`) + "PONG\r\n")},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			address, said := impostor(t, x.speak)
			a := Address{Servers: "nats://" + address, User: "reader", Pass: "secret"}
			if x.secure {
				a.Servers, a.CA = "tls://"+address, filepath.Join(dir, "ours.pem")
			}
			start := time.Now()
			nc, err := Dial(a, Reader, "test", func(string, ...any) {})
			if err == nil {
				nc.Close()
				t.Fatal("it is taken for a server")
			}
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("it took %v", took)
			}
			if n := len(err.Error()); n > 1000 {
				t.Errorf("an error of %d bytes", n)
			}
			if s := said(); x.secure && strings.Contains(s, "secret") {
				t.Errorf("the password was said in the clear: %q", s)
			}
		})
	}
}
