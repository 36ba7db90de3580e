package krbtest

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	gokrb5 "github.com/jcmturner/gokrb5/v8/types"
)

// Client is the user that a KDC knows.
const Client = "alice"

// KDC is a KDC for one client and one service, on loopback. It uses the library's code to check
// what a client has to prove.
type KDC struct {
	realm   *Realm
	clients *keytab.Keytab
	own     *keytab.Keytab
	etype   int32
	life    time.Duration
	l       net.Listener
	// Refuse, if it is not zero, is the error that is answered.
	Refuse atomic.Int32
	// Asked counts requests.
	Asked atomic.Int32
	// Wrong says that replies are encrypted with another key.
	Wrong atomic.Bool
}

// NewKDC starts a KDC of the realm, whose tickets are valid for a time.
func NewKDC(r *Realm, life time.Duration) *KDC {
	r.t.Helper()
	k := &KDC{realm: r, clients: keytab.New(), own: keytab.New(), etype: int32(r.etype), life: life}
	check(r.t, k.clients.AddEntry(Client, Name, "alice's password", time.Now(), 1, k.etype))
	check(r.t, k.own.AddEntry("krbtgt/"+Name, Name, "the KDC's password", time.Now(), 1, k.etype))
	var err error
	k.l, err = net.Listen("tcp", "127.0.0.1:0")
	check(r.t, err)
	r.t.Cleanup(func() { _ = k.l.Close() })
	go func() {
		for {
			c, err := k.l.Accept()
			if err != nil {
				return
			}
			go k.serve(c)
		}
	}()
	return k
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Keytab returns the client's keytab.
func (k *KDC) Keytab() []byte {
	b, err := k.clients.Marshal()
	check(k.realm.t, err)
	return b
}

// Config is a configuration file that names the KDC.
func (k *KDC) Config() []byte {
	return fmt.Appendf(nil, "[libdefaults]\n default_realm = %s\n dns_lookup_kdc = false\n[realms]\n %s = {\n  kdc = %s\n }\n", Name, Name, k.l.Addr())
}

func (k *KDC) serve(c net.Conn) {
	defer c.Close()
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return
	}
	b := make([]byte, min(binary.BigEndian.Uint32(head[:]), 1<<20))
	if _, err := io.ReadFull(c, b); err != nil {
		return
	}
	k.Asked.Add(1)
	out, err := k.answer(b)
	if code := k.Refuse.Load(); code != 0 {
		out = k.refusal(code)
	} else if err != nil {
		out = k.refusal(errorcode.KRB_AP_ERR_BAD_INTEGRITY)
	}
	_, _ = c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(out))), out...))
}

func (k *KDC) refusal(code int32) []byte {
	e := messages.NewKRBError(gokrb5.NewPrincipalName(2, "krbtgt/"+Name), Name, code, "says the test")
	b, _ := e.Marshal()
	return b
}

func (k *KDC) answer(b []byte) ([]byte, error) {
	var as messages.ASReq
	if as.Unmarshal(b) == nil {
		return k.initial(&as)
	}
	var tgs messages.TGSReq
	if err := tgs.Unmarshal(b); err != nil {
		return nil, err
	}
	return k.service(&tgs)
}

func (k *KDC) initial(q *messages.ASReq) ([]byte, error) {
	for _, pa := range q.PAData {
		if pa.PADataType != 2 {
			continue
		}
		var enc gokrb5.EncryptedData
		if err := enc.Unmarshal(pa.PADataValue); err != nil {
			return nil, err
		}
		key, _, err := k.clients.GetEncryptionKey(q.ReqBody.CName, Name, 1, enc.EType)
		if err != nil {
			return nil, err
		}
		plain, err := crypto.DecryptEncPart(enc, key, 1)
		if err != nil {
			return nil, err
		}
		var stamp gokrb5.PAEncTSEnc
		if err := stamp.Unmarshal(plain); err != nil {
			return nil, err
		}
		if d := time.Since(stamp.PATimestamp); d > time.Minute || d < -time.Minute {
			return nil, fmt.Errorf("%s off", d)
		}
		fields, err := k.reply(11, 3, q.ReqBody, q.ReqBody.CName, k.own, key)
		if err != nil {
			return nil, err
		}
		rep := messages.ASRep{KDCRepFields: *fields}
		return rep.Marshal()
	}
	return nil, fmt.Errorf("no proof")
}

func (k *KDC) service(q *messages.TGSReq) ([]byte, error) {
	for _, pa := range q.PAData {
		if pa.PADataType != 1 {
			continue
		}
		var ap messages.APReq
		if err := ap.Unmarshal(pa.PADataValue); err != nil {
			return nil, err
		}
		if ok, err := ap.Verify(k.own, time.Minute, gokrb5.HostAddress{}, nil); !ok {
			return nil, err
		}
		key := ap.Ticket.DecryptedEncPart.Key
		body, err := q.ReqBody.Marshal()
		if err != nil {
			return nil, err
		}
		e, err := crypto.GetChksumEtype(ap.Authenticator.Cksum.CksumType)
		if err != nil {
			return nil, err
		}
		if !e.VerifyChecksum(key.KeyValue, body, ap.Authenticator.Cksum.Checksum, 6) {
			return nil, fmt.Errorf("the checksum of the request is wrong")
		}
		fields, err := k.reply(13, 8, q.ReqBody, ap.Ticket.DecryptedEncPart.CName, k.realm.tab, key)
		if err != nil {
			return nil, err
		}
		rep := messages.TGSRep{KDCRepFields: *fields}
		return rep.Marshal()
	}
	return nil, fmt.Errorf("no proof")
}

// reply makes a ticket for the server of a request, encrypted with a key of tab.
func (k *KDC) reply(kind int, usage uint32, q messages.KDCReqBody, client gokrb5.PrincipalName, tab *keytab.Keytab, key gokrb5.EncryptionKey) (*messages.KDCRepFields, error) {
	kvno := 1
	if tab == k.realm.tab {
		kvno = 3
	}
	now := time.Now().UTC().Truncate(time.Second)
	end := now.Add(k.life)
	tkt, session, err := messages.NewTicket(client, Name, q.SName, Name, gokrb5.NewKrbFlags(), tab, k.etype, kvno, now, now, end, end)
	if err != nil {
		return nil, err
	}
	part := messages.EncKDCRepPart{Key: session, Nonce: q.Nonce, Flags: gokrb5.NewKrbFlags(), AuthTime: now, StartTime: now, EndTime: end, RenewTill: end, SRealm: Name, SName: q.SName,
		LastReqs: []messages.LastReq{{LRType: 0, LRValue: now}}, CAddr: []gokrb5.HostAddress{}}
	b, err := part.Marshal()
	if err != nil {
		return nil, err
	}
	if k.Wrong.Load() {
		key.KeyValue = append([]byte{}, key.KeyValue...)
		key.KeyValue[0] ^= 1
	}
	enc, err := crypto.GetEncryptedData(b, key, usage, 1)
	if err != nil {
		return nil, err
	}
	return &messages.KDCRepFields{PVNO: 5, MsgType: kind, CRealm: Name, CName: client, Ticket: tkt, EncPart: enc}, nil
}
