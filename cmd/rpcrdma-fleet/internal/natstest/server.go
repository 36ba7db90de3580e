// Package natstest starts NATS servers for tests.
package natstest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Documented starts a server with the configuration of docs/fleet, and returns its URL. root leads to the root of the
// repository. Each role's password is the role behind "secret-".
func Documented(t *testing.T, root string) (url string) {
	t.Helper()
	for _, role := range []string{"submitter", "worker", "reader", "agent"} {
		t.Setenv("FLEET_"+strings.ToUpper(role), "secret-"+role)
	}
	b, err := os.ReadFile(filepath.Join(root, "docs", "fleet", "nats-server.conf"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "nats.conf")
	conf := strings.NewReplacer("0.0.0.0:4222", "127.0.0.1:-1", "/var/lib/nats", t.TempDir()).Replace(string(b))
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	o.NoSigs, o.NoLog = true, true
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	t.Cleanup(s.Shutdown)
	if !s.ReadyForConnections(20 * time.Second) {
		t.Fatal("the server does not start")
	}
	return s.ClientURL()
}
