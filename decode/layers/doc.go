// Package layers makes the protocols of RPC-over-RDMA known to gopacket: what gopacket decodes and serialises
// for other protocols, it does for RoCE, InfiniBand, iWARP and RPC-over-RDMA, too. Import it for its effect,
// or for its types, which are used as those of gopacket/layers are. Both packages have the same name, so one
// of them needs another:
//
//	import rdma "github.com/rpcrdma/toolkit/decode/layers"
//
// # Registration
//
// As with gopacket/layers, importing the package registers everything:
//
//	UDP port 4791        BTH (RoCEv2)
//	EtherType 0x8915     GRH, then BTH (RoCEv1)
//	link type 247        LRH, then GRH or BTH (InfiniBand)
//	link type 197        ERF, then LRH, Ethernet or IP
//	TCP port 20049       MPA (NFS over iWARP)
//
// The layer types are constants with the numbers 1950 to 1979, those of endpoint types 1950 to 1959. Numbers
// are never given another meaning. iWARP has no port of its own: for a service on another port than 20049,
// call RegisterTCPPortLayerType of gopacket/layers with LayerTypeMPA.
//
// # What follows what
//
//	BTH [extension headers] CM, RPCoverRDMA or payload
//	MPA DDP RDMAP RPCoverRDMA or payload
//	RPCoverRDMA RPC payload
//
// Whatever travels in a Send, only its user knows. It is taken for RPC-over-RDMA if all of its header is
// plausible.
//
// What an extension header is, and what follows it, only the opcode in the BTH tells. Therefore BTH decodes
// the extension headers itself, as IPv6 of gopacket/layers does with its hop-by-hop header: BTH.RETH and so
// on point to those that are there, and the payload of the BTH is what follows them all. In a gopacket.Packet
// they are layers of their own as well. A gopacket.DecodingLayerParser needs the BTH only. The same is true
// of DDP and RDMAP, whose opcode stands within the DDP header.
//
// # Limits
//
// gopacket decodes packets one by one. A message that takes several packets has its headers in the first;
// what is in the others is payload. The RDMA Reads and Writes of a transaction are not brought together,
// either: that is what package decode is for.
//
// A datagram that segmentation offload has glued together from several packets fails to decode; see
// roce.Splitter.
//
// TCP is a stream, and FPDUs need not start where segments do. Many senders align them, and then MPA finds
// them: all those in a segment, and of the last one, if it goes on in the next segment, what is there. Where
// they are not aligned, or have markers, decoding fails, and the stream has to be followed with package
// decode/iwarp. gopacket.NewPacket inspects TCP only if DecodeOptions.DecodeStreamsAsDatagrams is set.
//
// If the capture has cut a packet, the decoder of a BTH has to know how long the packet was, to tell payload
// from pad and ICRC. In a gopacket.Packet it looks at the layer below. With a DecodingLayerParser it only
// knows from DecodingLayerParser.Truncated that something is missing, and takes all that is there for
// payload.
package layers
