package tshark

import (
	"encoding/binary"
	"net/netip"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// values are the values of fields, each in the order of the packet.
type values map[string][]string

func (v values) add(name, value string) {
	if value != "" {
		v[name] = append(v[name], value)
	}
}

// frame is what we decode of a packet.
type frame struct {
	values values
	time   int64
	src    netip.Addr
	cut    bool // the capture holds less than was sent
	tcp    bool
	// packets is the number of InfiniBand packets in it.
	packets int
	problem string
}

// infiniband files the headers of a packet's InfiniBand packets.
func (f *frame) infiniband(v *decode.PacketView) {
	f.packets = len(v.RoCE)
	if v.Frame.Proto == link.RoCEv1 || v.Frame.Proto == link.InfiniBand {
		f.routing(v.Frame)
	}
	for i := range v.RoCE {
		q := &v.RoCE[i]
		if q.Problem != roce.NoProblem {
			f.problem = q.Problem.String()
		}
		if q.Problem == roce.ProblemCutBTH || q.Problem == roce.ProblemShortBTH {
			continue
		}
		f.transport(q)
		if op := q.Opcode; op.Service() == roce.ServiceUD && q.DestQP == 1 {
			f.management(q)
		}
	}
	// The ICRC stands at the end of the last packet.
	if p := v.Frame.Payload; len(p) >= roce.ICRCSize && len(p) == v.Frame.PayloadLen && len(v.RoCE) == 1 {
		f.values.add("infiniband.invariant.crc", num(binary.BigEndian.Uint32(p[len(p)-roce.ICRCSize:])))
	}
}

// routing files LRH and GRH.
func (f *frame) routing(l *link.Frame) {
	h := l.Net
	if l.Proto == link.InfiniBand {
		if len(h) < roce.LRHSize {
			return
		}
		lrh := roce.LRH(h)
		f.values.add("infiniband.lrh.vl", num(lrh.VL()))
		f.values.add("infiniband.lrh.sl", num(lrh.SL()))
		f.values.add("infiniband.lrh.lnh", num(lrh.LNH()))
		f.values.add("infiniband.lrh.dlid", num(lrh.DLID()))
		f.values.add("infiniband.lrh.pktlen", num(lrh.PktLen()))
		f.values.add("infiniband.lrh.slid", num(lrh.SLID()))
		h = h[roce.LRHSize:]
	}
	if len(h) < roce.GRHSize {
		return
	}
	grh := roce.GRH(h)
	f.values.add("infiniband.grh.tclass", num(grh.TrafficClass()))
	f.values.add("infiniband.grh.flowlabel", num(grh.FlowLabel()))
	f.values.add("infiniband.grh.paylen", num(grh.PayloadLen()))
	f.values.add("infiniband.grh.nxthdr", num(grh.NextHeader()))
	f.values.add("infiniband.grh.hoplmt", num(grh.HopLimit()))
}

// transport files BTH and extension headers.
func (f *frame) transport(q *roce.Packet) {
	v := f.values
	v.add("infiniband.bth.opcode", num(q.Opcode))
	v.add("infiniband.bth.se", boolean(q.SE))
	v.add("infiniband.bth.m", boolean(q.MigReq))
	v.add("infiniband.bth.padcnt", num(q.Pad))
	v.add("infiniband.bth.tver", num(q.TVer))
	v.add("infiniband.bth.p_key", num(q.PKey))
	v.add("infiniband.bth.destqp", num(q.DestQP))
	v.add("infiniband.bth.a", boolean(q.AckReq))
	v.add("infiniband.bth.psn", num(q.PSN))
	if q.Headers&roce.HasRETH != 0 {
		v.add("infiniband.reth.va", num(q.RETH.VA))
		v.add("infiniband.reth.r_key", num(q.RETH.RKey))
		v.add("infiniband.reth.dmalen", num(q.RETH.DMALen))
	}
	if q.Headers&roce.HasAETH != 0 {
		s := q.AETH.Syndrome
		v.add("infiniband.aeth.syndrome.opcode", num(uint8(s)>>5&3))
		switch {
		case s.IsACK():
			v.add("infiniband.aeth.syndrome.credit_count", num(s.Value()))
		case s.IsRNR():
			v.add("infiniband.aeth.syndrome.timer", num(s.Value()))
		case s.IsNAK():
			v.add("infiniband.aeth.syndrome.error_code", num(s.Value()))
		}
		v.add("infiniband.aeth.msn", num(q.AETH.MSN))
	}
	if q.Headers&roce.HasIETH != 0 {
		v.add("infiniband.ieth", bin(binary.BigEndian.AppendUint32(nil, q.IETH)))
	}
	if q.Headers&roce.HasImmDt != 0 {
		v.add("infiniband.immdt", bin(binary.BigEndian.AppendUint32(nil, q.Imm)))
	}
	if q.Headers&roce.HasDETH != 0 {
		v.add("infiniband.deth.q_key", num(q.DETH.QKey))
		v.add("infiniband.deth.srcqp", num(q.DETH.SrcQP))
	}
}

// management files a connection management MAD.
func (f *frame) management(q *roce.Packet) {
	v := f.values
	mad := ibcm.MAD(q.Payload)
	if !mad.IsValid() {
		return
	}
	v.add("infiniband.mad.baseversion", num(mad.BaseVersion()))
	v.add("infiniband.mad.mgmtclass", num(mad.Class()))
	v.add("infiniband.mad.classversion", num(mad.ClassVersion()))
	v.add("infiniband.mad.method", num(mad.Method()))
	v.add("infiniband.mad.status", num(mad.Status()))
	v.add("infiniband.mad.transactionid", num(mad.TransactionID()))
	v.add("infiniband.mad.attributeid", num(mad.Attribute()))
	v.add("infiniband.mad.attributemodifier", num(mad.Modifier()))
	if len(mad.Data()) < ibcm.DataSize {
		return
	}
	var m ibcm.Message
	ibcm.Decode(q.Payload, len(q.Payload), &m)
	switch mad.Attribute() {
	case ibcm.AttributeREQ:
		v.add("infiniband.cm.req", num(m.LocalID))
		f.request(ibcm.REQ(mad.Data()), m.Private)
	case ibcm.AttributeREP:
		r := ibcm.REP(mad.Data())
		v.add("infiniband.cm.rep", num(m.LocalID))
		v.add("infiniband.cm.rep.remotecommid", num(m.RemoteID))
		v.add("infiniband.cm.rep.localqpn", num(r.LocalQPN()))
		v.add("infiniband.cm.rep.startpsn", num(r.StartingPSN()))
		v.add("infiniband.cm.rep.respres", num(r.ResponderResources()))
		v.add("infiniband.cm.rep.initdepth", num(r.InitiatorDepth()))
		v.add("infiniband.cm.rep.rnrretrcount", num(r.RNRRetryCount()))
		v.add("infiniband.cm.rep.localcaguid", num(r.LocalCAGUID()))
		v.add("infiniband.cm.rep.private", bin(r.Private()))
	case ibcm.AttributeRTU:
		r := ibcm.RTU(mad.Data())
		v.add("infiniband.cm.rtu.localcommid", num(m.LocalID))
		v.add("infiniband.cm.rtu.remotecommid", num(m.RemoteID))
		v.add("infiniband.cm.rtu.private", bin(r.Private()))
	case ibcm.AttributeREJ:
		r := ibcm.REJ(mad.Data())
		v.add("infiniband.cm.rej.localcommid", num(m.LocalID))
		v.add("infiniband.cm.rej.remotecommid", num(m.RemoteID))
		v.add("infiniband.cm.rej.msgrej", num(r.Rejected()))
		v.add("infiniband.cm.rej.reason", num(r.Reason()))
		v.add("infiniband.cm.rej.private", bin(r.Private()))
	case ibcm.AttributeDREQ:
		r := ibcm.DREQ(mad.Data())
		v.add("infiniband.cm.dreq.localcommid", num(m.LocalID))
		v.add("infiniband.cm.dreq.remotecommid", num(m.RemoteID))
		v.add("infiniband.cm.req.remoteqpneecn", num(r.RemoteQPN()))
		v.add("infiniband.cm.dreq.private", bin(r.Private()))
	case ibcm.AttributeDREP:
		r := ibcm.DREP(mad.Data())
		v.add("infiniband.cm.drsp.localcommid", num(m.LocalID))
		v.add("infiniband.cm.drsp.remotecommid", num(m.RemoteID))
		v.add("infiniband.cm.drsp.private", bin(r.Private()))
	}
}

func (f *frame) request(r ibcm.REQ, private []byte) {
	v := f.values
	ip := false
	if proto, port, ok := r.ServiceID().IP(); ok {
		ip = true
		v.add("infiniband.cm.req.serviceid.protocol", num(proto))
		v.add("infiniband.cm.req.serviceid.dport", num(port))
	}
	v.add("infiniband.cm.req.localcaguid", num(r.LocalCAGUID()))
	v.add("infiniband.cm.req.localqpn", num(r.LocalQPN()))
	v.add("infiniband.cm.req.responderres", num(r.ResponderResources()))
	v.add("infiniband.cm.req.initdepth", num(r.InitiatorDepth()))
	v.add("infiniband.cm.req.transpsvctype", num(r.Transport()))
	v.add("infiniband.cm.req.startpsn", num(r.StartingPSN()))
	v.add("infiniband.cm.req.retrcount", num(r.RetryCount()))
	v.add("infiniband.cm.req.pkey", num(r.PKey()))
	v.add("infiniband.cm.req.pppmtu", num(r.PathMTU()))
	v.add("infiniband.cm.req.rnrretrcount", num(r.RNRRetryCount()))
	p := r.Primary()
	v.add("infiniband.cm.req.prim_localacktout", num(p.AckTimeout()))
	suffix := ""
	if p.LocalGID().Is4In6() {
		suffix = "_ipv4"
	}
	v.add("infiniband.cm.req.prim_localgid"+suffix, p.LocalGID().Unmap().String())
	v.add("infiniband.cm.req.prim_remotegid"+suffix, p.RemoteGID().Unmap().String())
	if !ip {
		return
	}
	h := r.IPHeader()
	version := "6"
	if h.Src().Is4() {
		version = "4"
	}
	v.add("infiniband.cm.req.ip_cm.ipv", num(h.IPVersion()))
	v.add("infiniband.cm.req.ip_cm.sport", num(h.SrcPort()))
	v.add("infiniband.cm.req.ip_cm.sip"+version, h.Src().String())
	v.add("infiniband.cm.req.ip_cm.dip"+version, h.Dst().String())
	v.add("infiniband.cm.req.ip_cm.private", bin(private))
}
