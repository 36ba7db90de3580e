package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// answers is a collector that answers each request with the same bytes, and then with zeros until nobody reads any more, if endless.
func answers(t *testing.T, endless bool, text string) (url string, written *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	written = new(atomic.Int64)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r, err := http.ReadRequest(bufio.NewReader(c))
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, r.Body)
				_, err = io.WriteString(c, text)
				for zeros := bytes.Repeat([]byte("0"), 64<<10); endless && err == nil; {
					var n int
					n, err = c.Write(zeros)
					written.Add(int64(n))
				}
			}()
		}
	}()
	return "http://" + l.Addr().String(), written
}

// partial is the body of an answer that takes all but some spans.
func partial(t *testing.T, rejected int64, message string) string {
	t.Helper()
	b, err := proto.Marshal(&collectortrace.ExportTraceServiceResponse{PartialSuccess: &collectortrace.ExportTracePartialSuccess{RejectedSpans: rejected, ErrorMessage: message}})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// ok is an answer with a body.
func ok(contentType, body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", contentType, len(body), body)
}

// TestHostileCollector: whatever a collector answers, the program ends soon, reads no more than a few MiB of it, prints little and nothing
// that controls a terminal, and does not say that spans were taken which were not.
func TestHostileCollector(t *testing.T) {
	const protobuf, large = "application/x-protobuf", 16 << 20
	line, _, _ := strings.Cut(listing(t, "rocev2-nfs41-recall.pcap"), "\n")
	control := "\x1b[2J\x1b]0;owned\a\u202e\u0085\r\nrpcrdma-otlp: 1 transaction read; 9 spans sent, 0 not accepted"
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write(make([]byte, large*2))
	z.Close()
	for _, c := range []struct {
		name    string
		answer  string
		endless bool
		taken   bool // the spans are: status 0, or some of them
	}{
		{name: "nothing"},
		{name: "noise", answer: strings.Repeat("\x00\xff\x1b[31m", 100)},
		{name: "another protocol", answer: "SSH-2.0-OpenSSH_9.2\r\n"},
		{name: "HTTP/2", answer: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
		{name: "an alert of TLS", answer: "\x15\x03\x01\x00\x02\x02\x46"},
		{name: "status 0", answer: "HTTP/1.1 000 \r\n\r\n"},
		{name: "status of five digits", answer: "HTTP/1.1 20000 OK\r\n\r\n"},
		{name: "switches protocols", answer: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"},
		{name: "early hints without end", answer: strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n", 20000)},
		{name: "a header without end", answer: "HTTP/1.1 200 OK\r\nX: ", endless: true},
		{name: "a body without end", answer: "HTTP/1.1 200 OK\r\nContent-Type: " + protobuf + "\r\n\r\n", endless: true},
		{name: "an error without end", answer: "HTTP/1.1 400 Bad Request\r\n\r\n", endless: true},
		{name: "a chunk without end", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\n", endless: true},
		{name: "a chunk of no length", answer: "HTTP/1.1 200 OK\r\nContent-Type: " + protobuf + "\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"},
		{name: "a body that is cut", answer: "HTTP/1.1 200 OK\r\nContent-Type: " + protobuf + "\r\nContent-Length: 1000\r\n\r\nx"},
		{name: "a bomb", answer: fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", protobuf, bomb.Len(), &bomb)},
		{name: "damaged gzip", answer: "HTTP/1.1 200 OK\r\nContent-Type: " + protobuf + "\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd"},
		{name: "no protobuf", answer: ok(protobuf, "\xff\xff\xff\xff")},
		{name: "a page", answer: ok("text/html", "<script>alert(1)</script>"), taken: true},
		{name: "waits for years", answer: "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1000000000\r\nContent-Length: 0\r\n\r\n"},
		{name: "waited for years", answer: "HTTP/1.1 429 Too Many Requests\r\nRetry-After: -9\r\nContent-Length: 0\r\n\r\n"},
		{name: "itself again", answer: "HTTP/1.1 307 Temporary Redirect\r\nLocation: /v1/traces\r\nContent-Length: 0\r\n\r\n"},
		{name: "a file", answer: "HTTP/1.1 308 Permanent Redirect\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"},
		{name: "a page elsewhere", answer: "HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n"},
		{name: "fewer than none rejected", answer: ok(protobuf, partial(t, -1, ""))},
		{name: "more rejected than sent", answer: ok(protobuf, partial(t, math.MaxInt64, "x"))},
		{name: "says that none were rejected", answer: ok(protobuf, partial(t, 1<<40, "x (0 spans rejected)\nx"))},
		{name: "controls the terminal", answer: ok(protobuf, partial(t, 1<<40, control))},
		{name: "an error that controls the terminal", answer: "HTTP/1.1 400 " + control[:9] + "\r\nContent-Length: 5000\r\n\r\n" + control + strings.Repeat("x", 5000-len(control))},
		{name: "an error of a megabyte", answer: fmt.Sprintf("HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n%s", 1<<20, strings.Repeat("x\n", 1<<19))},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "5000") // milliseconds
			url, written := answers(t, c.endless, c.answer)
			start := time.Now()
			status, diag := send(line+"\n", "--endpoint", url, "--wait", "50ms")
			if took := time.Since(start); took > time.Minute {
				t.Errorf("it took %v", took)
			}
			if c.taken == strings.Contains(diag, "0 spans sent") || !c.taken && status != 1 {
				t.Errorf("status %d: %.500s", status, diag)
			}
			if n := written.Load(); n > large {
				t.Errorf("it read %d bytes", n)
			}
			if len(diag) > 4096 {
				t.Errorf("it printed %d bytes", len(diag))
			}
			if strings.ContainsFunc(strings.ReplaceAll(diag, "\n", ""), func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }) ||
				strings.Count(diag, "\nrpcrdma-otlp: 1 transaction read; ") > 1 || strings.Contains(diag, "9 spans sent, 0 not accepted\n") {
				t.Errorf("%q", diag)
			}
		})
	}
}

// TestSilentCollector: one that takes requests and says nothing, or takes nothing, costs no more than the time of a request.
func TestSilentCollector(t *testing.T) {
	line, _, _ := strings.Cut(listing(t, "rocev2-nfs41-recall.pcap"), "\n")
	for _, reads := range []bool{true, false} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				t.Cleanup(func() { c.Close() })
				if reads {
					go func() { _, _ = io.Copy(io.Discard, c) }()
				}
			}
		}()
		t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "50")
		if status, diag := send(line+"\n", "--endpoint", "http://"+l.Addr().String(), "--wait", "50ms"); status != 1 || !strings.Contains(diag, "0 spans sent") {
			t.Errorf("reads %v: status %d: %s", reads, status, diag)
		}
		l.Close()
	}
}

// TestImpostor: nothing is sent to who cannot show a certificate for the name.
func TestImpostor(t *testing.T) {
	line, _, _ := strings.Cut(listing(t, "rocev2-nfs41-recall.pcap"), "\n")
	for name, change := range map[string]func(*httptest.Server){
		"unknown authority": func(*httptest.Server) {},
		"an old version": func(s *httptest.Server) {
			s.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
		}, //nolint:gosec // it must be refused
		"no certificate": func(s *httptest.Server) {
			s.TLS = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, errors.New("none") }}
		},
	} {
		var asked atomic.Int64
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
		s.Config.ErrorLog = nil
		change(s)
		s.StartTLS()
		if status, diag := send(line+"\n", "--endpoint", s.URL, "--wait", "50ms"); status != 1 || asked.Load() != 0 || !strings.Contains(diag, "tls: ") {
			t.Errorf("%s: status %d, %d requests: %s", name, status, asked.Load(), diag)
		}
		s.Close()
	}
}
