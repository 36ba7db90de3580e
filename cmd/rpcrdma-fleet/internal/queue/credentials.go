package queue

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// maxCredentials is the size of a file with credentials or a seed.
const maxCredentials = 1 << 20

// readable looks for mistakes in the files with credentials: what the client of NATS says of them does not always name
// the file.
func (a Address) readable() error {
	if a.Creds == "" {
		return nil
	}
	b, err := readSmall(a.Creds)
	if err != nil {
		return fmt.Errorf("credentials of NATS: %w", err)
	}
	if _, err := user(b); err != nil {
		return fmt.Errorf("%s has no credentials of NATS, which are the JWT of a user and its key: %w", a.Creds, err)
	}
	key, err := nkeys.ParseDecoratedUserNKey(b)
	if err != nil {
		return fmt.Errorf("%s has a JWT, but not its key: %w", a.Creds, err)
	}
	key.Wipe()
	return nil
}

// user is the JWT in a file with credentials. Its signature is for the server to check.
func user(b []byte) (*jwt.UserClaims, error) {
	text, err := jwt.ParseDecoratedJWT(b)
	if err != nil {
		return nil, err
	}
	return jwt.DecodeUserClaims(text)
}

// reason says why the server may have refused the user: it does not tell, or what it tells is lost when it closes the
// connection.
func (a Address) reason(err error, now time.Time) string {
	text := strings.ToLower(err.Error()) // what a server says while connecting is not always one of the client's errors
	if strings.Contains(text, "authorization violation") || strings.Contains(text, "authentication expired") {
		return a.creds(now)
	}
	// The server's alert is lost if the client is still sending when it comes.
	if closed := strings.Contains(text, "closed by remote after tls handshake"); closed && a.Cert == "" {
		return ": the server may want a certificate (--tls-cert and --tls-key)"
	} else if closed || strings.Contains(text, "certificate") {
		return a.certificate(now)
	}
	return ""
}

// creds says what may be wrong with the credentials.
func (a Address) creds(now time.Time) string {
	if a.Creds == "" {
		return ""
	}
	b, err := readSmall(a.Creds)
	if err != nil {
		return ""
	}
	c, err := user(b)
	switch {
	case err != nil:
		return ""
	case c.Expires > 0 && c.Expires <= now.Unix():
		return fmt.Sprintf(": the credentials of %q in %s expired at %s", c.Name, a.Creds, stamp(time.Unix(c.Expires, 0)))
	case c.NotBefore > now.Unix():
		return fmt.Sprintf(": the credentials of %q in %s are valid from %s on", c.Name, a.Creds, stamp(time.Unix(c.NotBefore, 0)))
	}
	return fmt.Sprintf(": the credentials of %q in %s are not of an account of this server, or were revoked", c.Name, a.Creds)
}

// certificate says what may be wrong with the certificate.
func (a Address) certificate(now time.Time) string {
	pair, err := tls.LoadX509KeyPair(a.Cert, a.Key)
	switch {
	case err != nil || pair.Leaf == nil:
		return ""
	case now.After(pair.Leaf.NotAfter):
		return fmt.Sprintf(": the certificate in %s expired at %s", a.Cert, stamp(pair.Leaf.NotAfter))
	case now.Before(pair.Leaf.NotBefore):
		return fmt.Sprintf(": the certificate in %s is valid from %s on", a.Cert, stamp(pair.Leaf.NotBefore))
	}
	return fmt.Sprintf(": the server and the certificate in %s may be of different authorities", a.Cert)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func readSmall(name string) ([]byte, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxCredentials:
		return nil, &os.PathError{Op: "read", Path: name, Err: errors.New("not a file of credentials")}
	}
	return os.ReadFile(name)
}
