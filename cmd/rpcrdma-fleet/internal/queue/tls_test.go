package queue

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// certificate writes one for the loopback address, signed by itself, with its key.
func certificate(t *testing.T, dir, name string) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+"-key.pem")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// Both sides show certificates, and the client has an NKey.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	serverCert, serverKey := certificate(t, dir, "server")
	clientCert, clientKey := certificate(t, dir, "client")
	user, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := user.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := user.Seed()
	if err != nil {
		t.Fatal(err)
	}
	nkey := filepath.Join(dir, "user.nk")
	if err := os.WriteFile(nkey, seed, 0o600); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(serverCert, serverKey)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	b, err := os.ReadFile(clientCert)
	if err != nil || !pool.AppendCertsFromPEM(b) {
		t.Fatal(err)
	}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, TLS: true, TLSVerify: true, TLSTimeout: 5,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12},
		Nkeys:     []*server.NkeyUser{{Nkey: public}},
	})
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	t.Cleanup(s.Shutdown)
	if !s.ReadyForConnections(20 * time.Second) {
		t.Fatal("the server does not start")
	}
	whole := Address{Servers: s.ClientURL(), NKey: nkey, CA: serverCert, Cert: clientCert, Key: clientKey}
	for _, x := range []struct {
		name   string
		change func(*Address)
		ok     bool
	}{
		{"all", func(*Address) {}, true},
		{"no certificate", func(a *Address) { a.Cert, a.Key = "", "" }, false},
		{"certificate of somebody else", func(a *Address) { a.Cert, a.Key = serverCert, serverKey }, false},
		{"unknown server", func(a *Address) { a.CA = clientCert }, false},
		{"no NKey", func(a *Address) { a.NKey = "" }, false},
		{"no such file", func(a *Address) { a.NKey = filepath.Join(dir, "none") }, false},
		{"certificate without key", func(a *Address) { a.Key = "" }, false},
	} {
		a := whole
		x.change(&a)
		nc, err := Dial(a, Reader, "test", func(string, ...any) {})
		if (err == nil) != x.ok {
			t.Errorf("%s: %v", x.name, err)
		}
		if err == nil {
			nc.Close()
		}
	}
}
