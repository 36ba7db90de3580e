// Package metrics serves the metrics of a program to Prometheus.
package metrics

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

// Server serves metrics over HTTP.
type Server struct {
	program string
	l       net.Listener
	s       *http.Server
}

// Listen opens the address for the metrics of a program. Without a host it listens on loopback only: file names are not
// published unless asked for.
func Listen(program, address string) (*Server, error) {
	if strings.HasPrefix(address, ":") {
		address = "localhost" + address
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, cli.Usagef("--listen: %v", err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return &Server{program: program, l: l}, nil
}

// Addr is the address that is listened on.
func (m *Server) Addr() string { return m.l.Addr().String() }

// Handler answers requests. On a loopback address it answers only those that name one: a page in a browser may have a
// name of its own point to 127.0.0.1 (DNS rebinding), and then read what the browser's user may read.
func (m *Server) Handler(c prometheus.Collector) http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(c)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "%s: metrics are at /metrics\n", m.program)
	})
	a, ok := m.l.Addr().(*net.TCPAddr)
	if !ok || !a.IP.IsLoopback() {
		return mux
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
		if ip := net.ParseIP(host); !strings.EqualFold(host, "localhost") && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, m.program+": the metrics of a loopback address are served under localhost or that address only; see --listen", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// Serve begins to answer requests.
func (m *Server) Serve(c prometheus.Collector) {
	m.s = &http.Server{Handler: m.Handler(c), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute}
	go func() {
		if err := m.s.Serve(m.l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			return // nobody can be told, and the program continues
		}
	}()
}

// Close ends it.
func (m *Server) Close() {
	if m.s != nil {
		m.s.Close()
	}
	m.l.Close()
}
