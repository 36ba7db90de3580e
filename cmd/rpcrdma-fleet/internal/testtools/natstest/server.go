// Package natstest starts NATS servers for tests.
package natstest

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Roles are the users of docs/fleet/nats-server.conf.
var Roles = []string{"submitter", "worker", "reader", "agent"}

// Kind is how clients show who they are.
type Kind string

// Kinds.
const (
	Passwords    Kind = "passwords"
	NKeys        Kind = "NKeys"
	JWTs         Kind = "JWTs over mutual TLS" // the server is in operator mode
	Certificates Kind = "certificates"         // each stands for a user: verify_and_map
)

// Kinds are all of them.
var Kinds = []Kind{Passwords, NKeys, JWTs, Certificates}

// Server is a NATS server with the users and permissions of docs/fleet/nats-server.conf.
type Server struct {
	URL    string
	server *server.Server
	dir    string
	tls    bool
	logins map[string]map[string]string // by role
	users  []*server.User               // of the configuration
	ca     *CA
	issuer *issuer // of JWTs
}

// Documented starts a server with the configuration of docs/fleet. root leads to the root of the repository.
func Documented(t *testing.T, root string, kind Kind) *Server {
	t.Helper()
	s := &Server{dir: t.TempDir(), logins: make(map[string]map[string]string)}
	for _, role := range Roles {
		t.Setenv("FLEET_"+strings.ToUpper(role), "secret-"+role)
		s.logins[role] = map[string]string{"NATS_USER": role, "NATS_PASSWORD": "secret-" + role}
	}
	b, err := os.ReadFile(filepath.Join(root, "docs", "fleet", "nats-server.conf"))
	if err != nil {
		t.Fatal(err)
	}
	conf := strings.NewReplacer("0.0.0.0:4222", "127.0.0.1:-1", "/var/lib/nats", filepath.Join(s.dir, "store"), "/etc/nats", s.dir).Replace(string(b))
	if s.tls = kind == JWTs || kind == Certificates; s.tls {
		conf = s.withTLS(t, conf)
	}
	file := filepath.Join(s.dir, "nats.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	o.NoSigs, o.NoLog = true, true
	// Of a disk that is nearly full it would take a part, and refuse the stream of the agents.
	o.JetStreamMaxMemory, o.JetStreamMaxStore = 32<<20, 4<<30
	s.users = o.Users
	if len(s.users) != len(Roles) {
		t.Fatalf("%d users", len(s.users))
	}
	switch kind {
	case Passwords:
	case NKeys:
		s.nkeys(t, o)
	case JWTs:
		s.operator(t, o)
	case Certificates:
		o.TLSMap = true
		for _, u := range s.users {
			u.Password = "" // the server would ask for both
			s.logins[u.Username] = nil
		}
	}
	if s.server, err = server.NewServer(o); err != nil {
		t.Fatal(err)
	}
	go s.server.Start()
	t.Cleanup(func() { // before its folder is removed
		s.server.Shutdown()
		s.server.WaitForShutdown()
	})
	if !s.server.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	s.URL = s.server.ClientURL()
	return s
}

// Login is what a role needs in order to connect, as variables of the environment.
func (s *Server) Login(role string) map[string]string {
	login := map[string]string{"NATS_URL": s.URL}
	for k, v := range s.logins[role] {
		login[k] = v
	}
	if s.tls {
		login["NATS_CA"] = filepath.Join(s.dir, "ca.pem")
		login["NATS_CERT"], login["NATS_KEY"] = filepath.Join(s.dir, role+".pem"), filepath.Join(s.dir, role+"-key.pem")
	}
	return login
}

// Setenv sets what a role needs, and removes what another needed.
func (s *Server) Setenv(t *testing.T, role string) {
	t.Helper()
	login := s.Login(role)
	for _, k := range []string{"NATS_URL", "NATS_CREDS", "NATS_NKEY", "NATS_USER", "NATS_PASSWORD", "NATS_CA", "NATS_CERT", "NATS_KEY", "NATS_CONTEXT"} {
		t.Setenv(k, login[k])
	}
}

// withTLS has the part about TLS of the configuration count, and makes the certificates that it names.
func (s *Server) withTLS(t *testing.T, conf string) string {
	t.Helper()
	before, rest, ok := strings.Cut(conf, "# tls {\n")
	block, after, ok2 := strings.Cut(rest, "\n# }\n")
	if !ok || !ok2 {
		t.Fatal("the configuration has no part about TLS")
	}
	s.ca = NewCA(t, s.dir, "ca")
	for _, name := range append([]string{"server"}, Roles...) {
		s.Certificate(t, name, time.Hour)
	}
	return before + "tls {" + strings.ReplaceAll("\n"+block, "\n# ", "\n") + "\n}\n" + after
}

// Certificate makes one that the server trusts, valid for this time from now.
func (s *Server) Certificate(t *testing.T, name string, valid time.Duration) (cert, key string) {
	t.Helper()
	s.ca.Issue(t, s.dir, name, valid)
	return filepath.Join(s.dir, name+".pem"), filepath.Join(s.dir, name+"-key.pem")
}

// Log is t.Logf until the test has cleaned up what it starts afterwards: what runs in the background may still have
// something to say then.
func Log(t *testing.T) func(format string, args ...any) {
	t.Helper()
	var mu sync.Mutex
	ended := false
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		ended = true
	})
	return func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		if !ended {
			t.Logf(format, args...)
		}
	}
}
