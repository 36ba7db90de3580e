package tshark

import "strings"

// level is what the values of a field belong to.
type level uint8

const (
	packetLevel  level = iota // a packet: compared frame by frame
	headerLevel               // an RPC-over-RDMA header: by frame and XID
	messageLevel              // an RPC message: by XID and direction
)

// field is a field of tshark.
type field struct {
	name  string
	level level
	kind  kind
	// once says that tshark repeats the value at will: only the distinct
	// values count.
	once bool
}

func fields(l level, k kind, names string) []field {
	var list []field
	for _, n := range strings.Fields(names) {
		list = append(list, field{name: n, level: l, kind: k})
	}
	return list
}

func concat(lists ...[]field) []field {
	var all []field
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// allFields are the fields that are compared.
var allFields = concat(
	// The headers of InfiniBand and RoCE.
	fields(packetLevel, number, `
		infiniband.lrh.vl infiniband.lrh.sl infiniband.lrh.lnh infiniband.lrh.dlid infiniband.lrh.pktlen infiniband.lrh.slid
		infiniband.grh.tclass infiniband.grh.flowlabel infiniband.grh.paylen infiniband.grh.nxthdr infiniband.grh.hoplmt
		infiniband.bth.opcode infiniband.bth.se infiniband.bth.m infiniband.bth.padcnt infiniband.bth.tver
		infiniband.bth.p_key infiniband.bth.destqp infiniband.bth.a infiniband.bth.psn
		infiniband.reth.va infiniband.reth.r_key infiniband.reth.dmalen
		infiniband.aeth.syndrome.opcode infiniband.aeth.syndrome.credit_count infiniband.aeth.syndrome.timer
		infiniband.aeth.syndrome.error_code infiniband.aeth.msn
		infiniband.deth.q_key infiniband.deth.srcqp
		infiniband.invariant.crc`),
	fields(packetLevel, octets, `infiniband.immdt`),
	[]field{{name: "infiniband.ieth", kind: octets, once: true}}, // the header and its only field have the same name
	// Connection management.
	fields(packetLevel, number, `
		infiniband.mad.baseversion infiniband.mad.mgmtclass infiniband.mad.classversion infiniband.mad.method
		infiniband.mad.status infiniband.mad.transactionid infiniband.mad.attributeid infiniband.mad.attributemodifier
		infiniband.cm.req infiniband.cm.req.serviceid.protocol infiniband.cm.req.serviceid.dport
		infiniband.cm.req.localcaguid infiniband.cm.req.localqpn infiniband.cm.req.responderres
		infiniband.cm.req.initdepth infiniband.cm.req.transpsvctype infiniband.cm.req.startpsn
		infiniband.cm.req.retrcount infiniband.cm.req.pkey infiniband.cm.req.pppmtu
		infiniband.cm.req.rnrretrcount infiniband.cm.req.prim_localacktout
		infiniband.cm.req.ip_cm.ipv infiniband.cm.req.ip_cm.sport
		infiniband.cm.rep infiniband.cm.rep.remotecommid infiniband.cm.rep.localqpn
		infiniband.cm.rep.startpsn infiniband.cm.rep.respres infiniband.cm.rep.initdepth
		infiniband.cm.rep.rnrretrcount infiniband.cm.rep.localcaguid
		infiniband.cm.rtu.localcommid infiniband.cm.rtu.remotecommid
		infiniband.cm.rej.localcommid infiniband.cm.rej.remotecommid infiniband.cm.rej.msgrej infiniband.cm.rej.reason
		infiniband.cm.dreq.localcommid infiniband.cm.dreq.remotecommid infiniband.cm.req.remoteqpneecn
		infiniband.cm.drsp.localcommid infiniband.cm.drsp.remotecommid`),
	fields(packetLevel, octets, `
		infiniband.cm.req.ip_cm.private infiniband.cm.rep.private infiniband.cm.rtu.private
		infiniband.cm.rej.private infiniband.cm.dreq.private infiniband.cm.drsp.private`),
	fields(packetLevel, text, `
		infiniband.cm.req.prim_localgid_ipv4 infiniband.cm.req.prim_remotegid_ipv4
		infiniband.cm.req.prim_localgid infiniband.cm.req.prim_remotegid
		infiniband.cm.req.ip_cm.sip4 infiniband.cm.req.ip_cm.dip4 infiniband.cm.req.ip_cm.sip6 infiniband.cm.req.ip_cm.dip6`),
	// iWARP.
	fields(packetLevel, number, `
		iwarp_mpa.marker_flag iwarp_mpa.crc_flag iwarp_mpa.rej_flag iwarp_mpa.rev iwarp_mpa.pdlength
		iwarp_mpa.ulpdulength iwarp_mpa.crc iwarp_mpa.crc_check
		iwarp_ddp.tagged_flag iwarp_ddp.last_flag iwarp_ddp.dv iwarp_ddp.stag iwarp_ddp.tagged_offset
		iwarp_ddp.qn iwarp_ddp.msn iwarp_ddp.mo
		iwarp_rdma.version iwarp_rdma.opcode iwarp_rdma.inval_stag
		iwarp_rdma.sinkstag iwarp_rdma.sinkto iwarp_rdma.rdmardsz iwarp_rdma.srcstag iwarp_rdma.srcto
		iwarp_rdma.term_layer iwarp_rdma.term_errcode_rdma iwarp_rdma.term_errcode_ddp_tagged
		iwarp_rdma.term_errcode_ddp_untagged iwarp_rdma.term_errcode_llp`),
	fields(packetLevel, octets, `iwarp_mpa.privatedata`),
	// The transport header.
	fields(headerLevel, number, `
		rpcordma.xid rpcordma.version rpcordma.flow_control rpcordma.msg_type
		rpcordma.reads_count rpcordma.writes_count rpcordma.reply_count rpcordma.segment_count
		rpcordma.position rpcordma.rdma_handle rpcordma.rdma_length rpcordma.rdma_offset
		rpcordma.rdma_align rpcordma.rdma_thresh rpcordma.errcode rpcordma.vers_low rpcordma.vers_high`),
	// RPC.
	fields(messageLevel, number, `
		rpc.xid rpc.msgtyp rpc.version rpc.procedure
		rpc.auth.flavor rpc.auth.stamp rpc.auth.uid rpc.auth.gid
		rpc.authgss.version rpc.authgss.procedure rpc.authgss.seqnum rpc.authgss.service
		rpc.authgss.major rpc.authgss.minor rpc.authgss.window
		rpc.replystat rpc.state_accept rpc.state_reject rpc.state_auth`),
	fields(messageLevel, octets, `rpc.authgss.context`),
	fields(messageLevel, text, `rpc.auth.machinename`),
	[]field{
		{name: "rpc.program", level: messageLevel, once: true},
		{name: "rpc.programversion", level: messageLevel, once: true},
		{name: requestFrame, level: messageLevel},
		{name: responseTime, level: messageLevel, kind: seconds},
	},
	protocolFields(),
)

// Fields of replies that tshark derives. The first has the wrong name: in a
// reply it is the frame of the request.
const (
	requestFrame = "rpc.repframe"
	responseTime = "rpc.time"
)

var fieldByName = func() map[string]*field {
	m := make(map[string]*field, len(allFields))
	for i := range allFields {
		m[allFields[i].name] = &allFields[i]
	}
	return m
}()
