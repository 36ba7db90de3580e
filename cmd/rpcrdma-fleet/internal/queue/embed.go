package queue

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Embedded is a NATS server in this process, for the processes of one machine. It listens on the loopback
// interface at a port that the system chooses, and lets in who knows a random password.
type Embedded struct {
	Address Address
	s       *server.Server
	dir     string // to be removed
}

// Embed starts a server with its files in a directory; "" is a temporary one that Close removes.
func Embed(dir string, note func(format string, args ...any)) (*Embedded, error) {
	e := &Embedded{}
	if dir == "" {
		d, err := os.MkdirTemp("", "rpcrdma-fleet-")
		if err != nil {
			return nil, err
		}
		dir, e.dir = d, d
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	user, pass := "fleet", rand.Text()
	s, err := server.NewServer(&server.Options{
		ServerName: "rpcrdma-fleet", Host: "127.0.0.1", Port: server.RANDOM_PORT,
		Username: user, Password: pass,
		JetStream: true, StoreDir: filepath.Join(dir, "nats"),
		JetStreamMaxMemory: 32 << 20, JetStreamMaxStore: 4 << 30,
		NoSigs: true, MaxPayload: 64 << 10, MaxConn: 1024,
	})
	if err != nil {
		e.remove()
		return nil, fmt.Errorf("embedded NATS server: %w", err)
	}
	e.s = s
	s.SetLogger(serverNotes{note}, false, false)
	go s.Start()
	if !s.ReadyForConnections(time.Minute) {
		e.Close()
		return nil, errors.New("the embedded NATS server does not start; is its directory in use by another?")
	}
	e.Address = Address{Servers: s.ClientURL(), User: user, Pass: pass}
	return e, nil
}

// Close stops the server. What is queued stays in its directory, unless that is a temporary one.
func (e *Embedded) Close() {
	e.s.Shutdown()
	e.s.WaitForShutdown()
	e.remove()
}

func (e *Embedded) remove() {
	if e.dir != "" {
		_ = os.RemoveAll(e.dir)
	}
}

// serverNotes passes on what a server says of errors.
type serverNotes struct {
	note func(format string, args ...any)
}

func (n serverNotes) Noticef(string, ...any)         {}
func (n serverNotes) Debugf(string, ...any)          {}
func (n serverNotes) Tracef(string, ...any)          {}
func (n serverNotes) Warnf(string, ...any)           {}
func (n serverNotes) Fatalf(format string, v ...any) { n.note("embedded NATS: "+format, v...) }
func (n serverNotes) Errorf(format string, v ...any) { n.note("embedded NATS: "+format, v...) }
