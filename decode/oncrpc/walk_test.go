package oncrpc

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// printer writes down what it is shown, one item per line.
type printer struct {
	text  strings.Builder
	depth int
}

func (p *printer) line(format string, args ...any) {
	fmt.Fprintf(&p.text, strings.Repeat(" ", p.depth)+format+"\n", args...)
}

func (p *printer) Begin(name, typ string, i int)            { p.line("%s %s %d", name, typ, i); p.depth++ }
func (p *printer) End()                                     { p.depth-- }
func (p *printer) Uint(name string, v uint64)               { p.line("%s %d", name, v) }
func (p *printer) Int(name string, v int64)                 { p.line("%s %d", name, v) }
func (p *printer) Bool(name string, v bool)                 { p.line("%s %v", name, v) }
func (p *printer) Enum(name string, v uint32, s string)     { p.line("%s %d %s", name, v, s) }
func (p *printer) Flags(name string, v uint64, s string)    { p.line("%s %#x %s", name, v, s) }
func (p *printer) Bytes(name string, v []byte)              { p.line("%s %x", name, v) }
func (p *printer) String(name string, v []byte)             { p.line("%s %q", name, v) }
func (p *printer) Data(name string, d xdr.Data)             { p.line("%s %d", name, d.Length) }
func (p *printer) Time(name string, sec int64, nsec uint32) { p.line("%s %d.%09d", name, sec, nsec) }

func TestWalkCall(t *testing.T) {
	tests := []struct{ msg, want string }{
		{getportCall, `rpc rpc_msg -1
 xid 2572637452
 mtype 0 CALL
 cbody call_body -1
  rpcvers 2
  prog 100000
  vers 2
  proc 3
  cred opaque_auth -1
   flavor 1 AUTH_SYS
   stamp 0
   machinename "client"
   uid 0
   gid 0
  verf opaque_auth -1
   flavor 0 AUTH_NONE
   body 
`},
		{integCall, `rpc rpc_msg -1
 xid 852752759
 mtype 0 CALL
 cbody call_body -1
  rpcvers 2
  prog 100003
  vers 4
  proc 1
  cred opaque_auth -1
   flavor 6 RPCSEC_GSS
   version 1
   gss_proc 0 RPCSEC_GSS_DATA
   seq_num 1
   service 2 rpc_gss_svc_integrity
   handle 01000000
  verf opaque_auth -1
   flavor 6 RPCSEC_GSS
   body 040404ffffffffff000000002f04bb21823f6f6f06c95a6dd66fb730ea24082e0384bf31f3de8cd6
gss rpc_gss_integ_data -1
 seq_num 1
 checksum 040404ffffffffff000000002f04bb22ee41c750dc579001afd0351387c2329e6be3205abf0d4df7
`},
	}
	for _, tt := range tests {
		b := unhex(t, tt.msg)
		var c Call
		if err := c.Decode(b, len(b)); err != nil {
			t.Fatal(err)
		}
		var p printer
		c.Walk(&p)
		body := c.Body()
		body.Walk(&p)
		if p.text.String() != tt.want || p.depth != 0 {
			t.Errorf("got\n%swant\n%s", p.text.String(), tt.want)
		}
	}
}

func TestWalkReply(t *testing.T) {
	tests := []struct{ msg, want string }{
		{nullReply, `rpc rpc_msg -1
 xid 2858982796
 mtype 1 REPLY
 rbody reply_body -1
  reply_stat 0 MSG_ACCEPTED
  verf opaque_auth -1
   flavor 0 AUTH_NONE
   body 
  accept_stat 0 SUCCESS
`},
		{"0000000100000001" + "00000000" + "0000000000000000" + "00000002" + "0000000300000004", `rpc rpc_msg -1
 xid 1
 mtype 1 REPLY
 rbody reply_body -1
  reply_stat 0 MSG_ACCEPTED
  verf opaque_auth -1
   flavor 0 AUTH_NONE
   body 
  accept_stat 2 PROG_MISMATCH
  mismatch_info mismatch_info -1
   low 3
   high 4
`},
		{"0000000100000001" + "00000001" + "00000001" + "0000000d", `rpc rpc_msg -1
 xid 1
 mtype 1 REPLY
 rbody reply_body -1
  reply_stat 1 MSG_DENIED
  reject_stat 1 AUTH_ERROR
  auth_stat 13 RPCSEC_GSS_CREDPROBLEM
`},
	}
	for _, tt := range tests {
		b := unhex(t, tt.msg)
		var r Reply
		if err := r.Decode(b, len(b)); err != nil {
			t.Fatal(err)
		}
		var p printer
		r.Walk(&p)
		if p.text.String() != tt.want || p.depth != 0 {
			t.Errorf("got\n%swant\n%s", p.text.String(), tt.want)
		}
	}
}
