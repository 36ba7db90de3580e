package krb5

import (
	"bytes"
	crand "crypto/rand"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate"
)

// script is a conversation of two peers, for FuzzTransaction. It is made once, since encryption
// costs more than everything that is tested.
type script struct {
	keytab *Keytab
	scene  *scene
	units  [][]byte // see unit
	sealed int      // transactions that can be opened
}

// unit is a transaction as one message that can be changed: captured bytes of
// the call 16, length of the call 16, call, reply.
func unit(tx *transaction.Transaction) []byte {
	call := tx.Call.Payload
	b := binary.BigEndian.AppendUint16(nil, uint16(len(call)))
	b = binary.BigEndian.AppendUint16(b, uint16(len(call)))
	return slices.Concat(b, call, tx.Reply.Payload)
}

const unitHeader = 4

// transaction is the reverse of unit, whatever the lengths say.
func (s *script) transaction(b []byte, number uint64) *transaction.Transaction {
	tx := &transaction.Transaction{
		Connection: s.scene.conn, XID: uint32(number), Program: 100003, Version: 3, Procedure: 1, Named: true, State: transaction.NoReply,
	}
	if len(b) < unitHeader {
		return tx
	}
	seen, length, b := int(binary.BigEndian.Uint16(b)), int(binary.BigEndian.Uint16(b[2:])), b[unitHeader:]
	length = min(length, len(b))
	tx.Call = s.message(b[:length], min(seen, length), 2*number+1)
	if b = b[length:]; len(b) > 0 {
		tx.Reply = s.message(b, len(b), 2*number+2)
		tx.State = transaction.Complete
	}
	return tx
}

func (s *script) message(b []byte, captured int, packet uint64) transaction.Message {
	s.scene.packet = packet - 1
	m := s.scene.message(b)
	m.Payload = b[:captured:captured]
	return m
}

// argument and result are the only bytes that are ever protected with a sequence number.
func argument(seq uint32) []byte { return xdr.AppendUint32([]byte{0, 0, 0, 4}, seq) }

func result(seq uint32) []byte { return xdr.AppendUint32([]byte{0, 0, 0, 2}, ^seq) }

// protected is a call of krb5p, signed only if ec is negative, or krb5i. An honest
// peer protects its body with the same sequence number.
func (s *scene) protected(seq, body uint32, service oncrpc.Service, ec, rrc int) *transaction.Transaction {
	return s.raw(seq, service, xdr.AppendUint32(nil, body), argument(body), result(body), ec, rrc)
}

// raw is a call whose body begins with any bytes in place of the sequence number.
func (s *scene) raw(seq uint32, service oncrpc.Service, number, args, results []byte, ec, rrc int) *transaction.Transaction {
	body := func(from side, data []byte) []byte {
		data = slices.Concat(number, data)
		if service == oncrpc.ServicePrivacy {
			if ec < 0 {
				return xdr.AppendOpaque(nil, s.signed(from, data, rrc))
			}
			return xdr.AppendOpaque(nil, s.wrap(from, data, ec, rrc))
		}
		return xdr.AppendOpaque(xdr.AppendOpaque(nil, data), s.mic(from, data))
	}
	return s.exchange(s.cred(seq, service), s.verifier, body(initiator, args), s.mic(acceptor, xdr.AppendUint32(nil, seq)), body(acceptor, results))
}

// newScript plays the lives of two successive contexts with the same handle, of one type and with
// the keys that each side may contribute or not.
func newScript(t testing.TB, e EType, keys int) *script {
	key := newKey(AES256SHA1)
	s := newScene(t, e)
	x := &script{keytab: s.keytab(key, 3), scene: s}
	add := func(list ...*transaction.Transaction) {
		for _, tx := range list {
			x.units = append(x.units, unit(tx))
		}
	}
	for seq := uint32(1); seq < 200; seq += 100 {
		s.session, s.sub, s.acceptor = newKey(e), Key{}, Key{}
		if keys > 0 {
			s.sub = newKey(e)
		}
		if keys > 1 {
			s.acceptor = newKey(e)
		}
		none := s.cred(seq+3, oncrpc.ServiceNone)
		n := xdr.AppendUint32(nil, seq+3)
		add(s.init(key, 3),
			s.protected(seq, seq, oncrpc.ServicePrivacy, 0, 0),
			s.protected(seq+1, seq+1, oncrpc.ServicePrivacy, 5, 12),
			s.protected(seq+2, seq+2, oncrpc.ServiceIntegrity, 0, 0),
			s.exchange(none, s.verifier, fh, s.mic(acceptor, n), []byte{0, 0, 0, 2}))
		x.sealed += 3
	}
	// Errors that only the owner of the key can make: bodies of other calls, and one that is too
	// short.
	add(s.protected(109, 101, oncrpc.ServicePrivacy, 0, 0), s.protected(105, 101, oncrpc.ServiceIntegrity, 0, 0),
		s.protected(110, 101, oncrpc.ServicePrivacy, -1, 7),
		s.raw(106, oncrpc.ServicePrivacy, nil, []byte{1, 2}, []byte{3, 4}, 0, 0))
	x.sealed += 3 // with notes
	end := s.cred(107, oncrpc.ServiceNone)
	end.Proc = oncrpc.GSSDestroy
	add(s.exchange(end, s.verifier, nil, s.mic(acceptor, xdr.AppendUint32(nil, 107)), []byte{}), s.protected(108, 108, oncrpc.ServicePrivacy, 0, 0))
	x.sealed++ // it is opened, with a note
	return x
}

// newScripts makes the same scripts each time, confounders included, so that an
// input is the same in each process.
func newScripts(t testing.TB) []*script {
	before := crand.Reader
	defer func() { crand.Reader = before }()
	crand.Reader = rand.NewChaCha8([32]byte{1})
	var list []*script
	for _, e := range etypes {
		for keys := range 3 {
			list = append(list, newScript(t, e, keys))
		}
	}
	return list
}

// genuine checks that decrypted or verified data is what the owner of the key has protected,
// whatever happened to the message. If it was for another call, a note must say so.
func genuine(t *testing.T, tx *transaction.Transaction, o *rpc.Opened, b *oncrpc.Body, seq uint32, protected func(uint32) []byte) {
	data, own := o.Data, o.Sequence
	switch {
	case o.How == rpc.Decrypted && len(data) == o.Length:
	case o.How == rpc.Verified && b.Kind == oncrpc.BodyIntegrity:
		data, own = b.Data, b.Sequence
	case o.How == rpc.Decrypted, o.How == rpc.Prefix && len(data) > o.Length:
		t.Fatalf("%v: %d bytes of %d", o.How, len(data), o.Length)
	default:
		return
	}
	if !bytes.Equal(data, protected(own)) {
		t.Fatalf("sequence number %d: %v %x, the sender has protected %x", own, o.How, data, protected(own))
	}
	if own != seq && !slices.ContainsFunc(tx.Notes, func(n transaction.Note) bool { return n.Kind == transaction.KRB5Body }) {
		t.Fatalf("sequence number %d, of the call %d, and no note", own, seq)
	}
}

// play passes all transactions to one View. It returns how many of them were opened, call and
// reply.
func (s *script) play(t *testing.T, units [][]byte, limit int) (opened int) {
	c := New(s.keytab, Options{Contexts: limit})
	v := &rpc.View{Unwrap: c}
	for i, u := range units {
		v.Set(s.transaction(u, uint64(i)))
		genuine(t, v.Tx, &v.CallOpened, v.CallBody(), v.Call().GSS.Sequence, argument)
		genuine(t, v.Tx, &v.ReplyOpened, v.ReplyBody(), v.Call().GSS.Sequence, result)
		if how := v.CallOpened.How; how == v.ReplyOpened.How && (how == rpc.Decrypted || how == rpc.Verified) {
			opened++
		}
		n := 0
		for x := c.table.first; x != nil; x = x.next {
			n++
		}
		if n > limit || n != c.table.count {
			t.Fatalf("%d contexts, counted %d, of %d", n, c.table.count, limit)
		}
	}
	return opened
}

// FuzzTransaction changes the messages of contexts.
func FuzzTransaction(f *testing.F) {
	scripts := newScripts(f)
	for i := range 4 * len(scripts) {
		f.Add(uint8(i), []byte{})
	}
	f.Add(uint8(0), mutate.Program(mutate.Step{Op: mutate.TruncateUnit, At: 1, Where: 150}))
	f.Add(uint8(3), mutate.Program(mutate.Step{Op: mutate.DropUnit}, mutate.Step{Op: mutate.DoubleUnit, At: 2, Value: 3}))
	f.Add(uint8(5), mutate.Program(mutate.Step{Op: mutate.SwapUnits, At: 1, Value: 6 << 24}))
	f.Add(uint8(8), mutate.Program(mutate.Step{Op: mutate.CopyBytes, At: 1, Where: 30, Value: 2<<24 | 64}))
	f.Fuzz(func(t *testing.T, which uint8, program []byte) {
		s := scripts[int(which)%len(scripts)]
		opened := s.play(t, mutate.Units(s.units, program, 4096), 1+int(which)/len(scripts)%4)
		if len(program) == 0 && opened != s.sealed {
			t.Fatalf("%d transactions opened, want %d", opened, s.sealed)
		}
	})
}
