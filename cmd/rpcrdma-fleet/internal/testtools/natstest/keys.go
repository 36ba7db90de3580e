package natstest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// nkeys replaces users with passwords by users with keys, who may do the same.
func (s *Server) nkeys(t *testing.T, o *server.Options) {
	t.Helper()
	o.Users = nil
	for _, u := range s.users {
		key := newPair(t, nkeys.CreateUser)
		o.Nkeys = append(o.Nkeys, &server.NkeyUser{Nkey: key.public, Permissions: u.Permissions, Account: u.Account})
		file := filepath.Join(s.dir, u.Username+".nk")
		if err := os.WriteFile(file, key.seed, 0o600); err != nil {
			t.Fatal(err)
		}
		s.logins[u.Username] = map[string]string{"NATS_NKEY": file}
	}
}

// issuer signs JWTs of users: it has the key of an account.
type issuer struct{ account pair }

// operator makes the server one in operator mode: it knows no users, but an operator, whose accounts say by
// signatures who their users are and what those may do.
func (s *Server) operator(t *testing.T, o *server.Options) {
	t.Helper()
	operator, system := newPair(t, nkeys.CreateOperator), newPair(t, nkeys.CreateAccount)
	s.issuer = &issuer{newPair(t, nkeys.CreateAccount)}
	resolver := &server.MemAccResolver{}
	for _, a := range []pair{system, s.issuer.account} {
		c := jwt.NewAccountClaims(a.public)
		if a.public != system.public {
			c.Name = "FLEET"
			c.Limits.JetStreamLimits = jwt.JetStreamLimits{
				MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit,
				MaxAckPending: jwt.NoLimit, MemoryMaxStreamBytes: jwt.NoLimit, DiskMaxStreamBytes: jwt.NoLimit,
			}
		}
		text, err := c.Encode(operator.KeyPair)
		if err == nil {
			err = resolver.Store(a.public, text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	claims := jwt.NewOperatorClaims(operator.public)
	claims.SystemAccount = system.public
	text, err := claims.Encode(operator.KeyPair)
	if err != nil {
		t.Fatal(err)
	}
	if claims, err = jwt.DecodeOperatorClaims(text); err != nil {
		t.Fatal(err)
	}
	o.Users, o.Accounts = nil, nil
	o.TrustedOperators, o.AccountResolver, o.SystemAccount = []*jwt.OperatorClaims{claims}, resolver, system.public
	for _, role := range Roles {
		s.logins[role] = map[string]string{"NATS_CREDS": s.Creds(t, role, role, time.Hour)}
	}
}

// Nobody is a role that may do nothing.
const Nobody = "nobody"

// Creds writes credentials of a user with the permissions of a role, NAME.creds. They are valid for this time from
// now; a negative one has passed.
func (s *Server) Creds(t *testing.T, name, role string, valid time.Duration) string {
	t.Helper()
	return s.creds(t, s.issuer, name, role, valid)
}

// ForeignCreds are like Creds, signed by an account that the server does not know.
func (s *Server) ForeignCreds(t *testing.T, name, role string) string {
	t.Helper()
	return s.creds(t, &issuer{newPair(t, nkeys.CreateAccount)}, name, role, time.Hour)
}

func (s *Server) creds(t *testing.T, by *issuer, name, role string, valid time.Duration) string {
	t.Helper()
	user := newPair(t, nkeys.CreateUser)
	c := jwt.NewUserClaims(user.public)
	c.Name, c.Expires = name, time.Now().Add(valid).Unix()
	if role == Nobody {
		c.Pub.Allow, c.Sub.Allow = []string{"nothing"}, []string{"nothing"}
	}
	for _, u := range s.users {
		if u.Username == role {
			c.Pub.Allow, c.Pub.Deny = subjects(u.Permissions.Publish)
			c.Sub.Allow, c.Sub.Deny = subjects(u.Permissions.Subscribe)
		}
	}
	if len(c.Pub.Allow) == 0 || len(c.Sub.Allow) == 0 { // they might do everything then
		t.Fatalf("there is no role %s", role)
	}
	text, err := c.Encode(by.account.KeyPair)
	if err != nil {
		t.Fatal(err)
	}
	b, err := jwt.FormatUserConfig(text, user.seed)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.dir, name+".creds")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func subjects(p *server.SubjectPermission) (allow, deny []string) { return p.Allow, p.Deny }

// pair is a key, with its public part and the seed that it is made of.
type pair struct {
	nkeys.KeyPair
	public string
	seed   []byte
}

func newPair(t *testing.T, create func() (nkeys.KeyPair, error)) pair {
	t.Helper()
	k, err := create()
	if err != nil {
		t.Fatal(err)
	}
	p := pair{KeyPair: k}
	if p.public, err = k.PublicKey(); err != nil {
		t.Fatal(err)
	}
	if p.seed, err = k.Seed(); err != nil {
		t.Fatal(err)
	}
	return p
}
