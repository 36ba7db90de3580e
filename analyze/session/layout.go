package session

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rpc"
)

// Limits of pNFS.
const (
	maxLayouts  = 4096
	maxDevices  = 1024
	maxDataFH   = 16384
	maxOfLayout = 16 // devices and servers that one layout names
)

// pnfs is what is known about layouts.
type pnfs struct {
	layouts map[string]*layout // by the file's handle at the metadata server
	order   []*layout
	data    map[string]*layout // by the handle at a data server
	devices map[[16]byte]*Device
	byOrder []*Device
	recalls uint64
}

func (p *pnfs) init() {
	p.layouts, p.data, p.devices = make(map[string]*layout), make(map[string]*layout), make(map[[16]byte]*Device)
}

type layout struct {
	handle   string
	path     string
	server   string // the metadata server
	kind     nfs4.Layouttype4
	modes    [4]uint64 // LAYOUTGETs that were granted, by mode
	refused  map[string]uint64
	segments uint64
	returned uint64
	devices  [][16]byte
	servers  []*DataIO
	held     int // bytes beyond layoutSize
}

// Device is a device of pNFS.
type Device struct {
	ID        string   `json:"device"`
	Type      string   `json:"type"`
	Addresses []string `json:"addresses"` // "netid address:port", or the kind of volume
	Server    string   `json:"metadata_server"`
	Status    string   `json:"status"` // of the newest GETDEVICEINFO
}

// DataIO is a file's I/O to one data server.
type DataIO struct {
	Server  string `json:"server"`
	Reads   uint64 `json:"reads"`
	Writes  uint64 `json:"writes"`
	Read    uint64 `json:"bytes_read"`
	Written uint64 `json:"bytes_written"`
}

// kindName is a layout type in words.
func kindName(t nfs4.Layouttype4) string {
	switch t {
	case nfs4.LAYOUT4_NFSV4_1_FILES:
		return "files"
	case nfs4.LAYOUT4_OSD2_OBJECTS:
		return "objects"
	case nfs4.LAYOUT4_BLOCK_VOLUME:
		return "block"
	case nfs4.LAYOUT4_FLEX_FILES:
		return "flexible files"
	case nfs4.LAYOUT4_SCSI:
		return "SCSI"
	}
	return "type " + strconv.FormatUint(uint64(t), 10)
}

// of is the layout of a file; nil beyond the limit.
func (p *pnfs) of(r *Recorder, v *rpc.View, kind nfs4.Layouttype4) *layout {
	f := v.File()
	if f == nil {
		return nil
	}
	handle := f.Handle
	if f.Result != nil {
		handle = f.Result
	}
	l := p.layouts[string(handle)]
	if l == nil {
		n := layoutSize + 2*len(handle)
		if len(p.layouts) >= maxLayouts || !r.room(n) {
			r.lost.Layouts++
			return nil
		}
		r.held += n
		l = &layout{handle: string(handle), server: address(v.Tx.Server())}
		p.layouts[l.handle] = l
		p.order = append(p.order, l)
	}
	l.kind = kind
	if l.path == "" && v.Names != nil {
		l.path = v.Names.Of(v.Tx).Path(handle)
	}
	return l
}

// granted handles a LAYOUTGET.
func (p *pnfs) granted(r *Recorder, v *rpc.View, o *rpc.Operation, a *nfs4.LAYOUTGET4args) {
	res, ok := o.Result.(*nfs4.LAYOUTGET4res)
	if !ok || o.Status == "" {
		return
	}
	l := p.of(r, v, a.LogaLayoutType)
	if l == nil {
		return
	}
	if o.Code != 0 {
		r.add(&l.held, &l.refused, o.Status)
		return
	}
	l.modes[min(uint32(a.LogaIomode), 3)]++
	for i := range res.LogrResok4.LogrLayout {
		x := &res.LogrResok4.LogrLayout[i]
		l.segments++
		switch c := x.LoContent.Content().(type) {
		case *nfs4.Nfsv41FileLayout4:
			l.uses(c.NflDeviceid)
			for _, fh := range c.NflFhList {
				p.serves(r, l, fh)
			}
			if len(c.NflFhList) == 0 { // RFC 8881, section 13.3: that of the metadata server
				p.serves(r, l, []byte(l.handle))
			}
		case *nfs4.FfLayout4:
			for _, m := range c.FflMirrors {
				for _, d := range m.FfmDataServers {
					l.uses(d.FfdsDeviceid)
					for _, fh := range d.FfdsFhVers {
						p.serves(r, l, fh)
					}
				}
			}
		case *nfs4.PnfsBlockLayout4:
			for _, e := range c.BloExtents {
				l.uses(e.BexVolId)
			}
		case *nfs4.PnfsScsiLayout4:
			for _, e := range c.SlExtents {
				l.uses(e.SeVolId)
			}
		}
	}
}

func (l *layout) uses(id [16]byte) {
	if len(l.devices) < maxOfLayout && !slices.Contains(l.devices, id) {
		l.devices = append(l.devices, id)
	}
}

func (p *pnfs) serves(r *Recorder, l *layout, handle []byte) {
	if _, ok := p.data[string(handle)]; !ok {
		if len(p.data) >= maxDataFH || !r.take(&l.held, dataSize+len(handle)) {
			r.lost.Layouts++
			return
		}
	}
	p.data[string(handle)] = l
}

// returned handles a LAYOUTRETURN.
func (p *pnfs) returned(v *rpc.View, o *rpc.Operation) {
	if f := v.File(); f != nil && o.Code == 0 && o.Status != "" {
		if l := p.layouts[string(f.Handle)]; l != nil {
			l.returned++
		}
	}
}

// device handles a GETDEVICEINFO.
func (p *pnfs) device(r *Recorder, v *rpc.View, o *rpc.Operation, a *nfs4.GETDEVICEINFO4args) {
	res, ok := o.Result.(*nfs4.GETDEVICEINFO4res)
	if !ok || o.Status == "" {
		return
	}
	d := p.devices[a.GdiaDeviceId]
	if d == nil {
		if len(p.devices) >= maxDevices || !r.room(deviceSize) {
			r.lost.Layouts++
			return
		}
		r.held += deviceSize
		d = &Device{ID: hex.EncodeToString(a.GdiaDeviceId[:]), Server: address(v.Tx.Server()), Addresses: []string{}}
		p.devices[a.GdiaDeviceId] = d
		p.byOrder = append(p.byOrder, d)
	}
	d.Type, d.Status = kindName(a.GdiaLayoutType), o.Status
	if o.Code != 0 {
		return
	}
	d.Addresses = d.Addresses[:0]
	named := func(list []nfs4.Netaddr4) {
		for i := range list {
			d.name(netaddr(&list[i]))
		}
	}
	switch c := res.GdirResok4.GdirDeviceAddr.Content().(type) {
	case *nfs4.Nfsv41FileLayoutDsAddr4:
		for _, list := range c.NfldaMultipathDsList {
			named(list)
		}
	case *nfs4.FfDeviceAddr4:
		named(c.FfdaNetaddrs)
	case *nfs4.PnfsBlockDeviceaddr4:
		d.name(fmt.Sprintf("block: %d volumes", len(c.BdaVolumes)))
	case *nfs4.PnfsScsiDeviceaddr4:
		d.name("SCSI volumes")
	case nil:
		d.name("not decodable")
	}
}

func (d *Device) name(s string) {
	if len(d.Addresses) < maxOfLayout && !slices.Contains(d.Addresses, s) {
		d.Addresses = append(d.Addresses, s)
	}
}

// netaddr is an address of RFC 5665: "rdma 192.0.2.1:20049".
func netaddr(a *nfs4.Netaddr4) string {
	netid, text := readable(a.NaRNetid), readable(a.NaRAddr)
	// The last two numbers are the two bytes of the port (section 5.2.3).
	low := strings.LastIndexByte(text, '.')
	if low < 0 {
		return netid + " " + text
	}
	high := strings.LastIndexByte(text[:low], '.')
	if high < 0 {
		return netid + " " + text
	}
	x, err1 := strconv.ParseUint(text[high+1:low], 10, 8)
	y, err2 := strconv.ParseUint(text[low+1:], 10, 8)
	if err1 != nil || err2 != nil {
		return netid + " " + text
	}
	host := text[:high]
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return fmt.Sprintf("%s %s:%d", netid, host, x<<8|y)
}

// io handles a READ or WRITE with a handle that a layout has named.
func (p *pnfs) io(_ *Recorder, v *rpc.View) {
	if len(p.data) == 0 {
		return
	}
	f := v.File()
	if f == nil || f.Handle == nil {
		return
	}
	l := p.data[string(f.Handle)]
	if l == nil {
		return
	}
	server := address(v.Tx.Server())
	if server == l.server && string(f.Handle) == l.handle {
		return // to the metadata server itself
	}
	group := v.OperationGroup()
	if group != "READ" && group != "WRITE" {
		return
	}
	i := slices.IndexFunc(l.servers, func(d *DataIO) bool { return d.Server == server })
	if i < 0 {
		if len(l.servers) >= maxOfLayout {
			return
		}
		i = len(l.servers)
		l.servers = append(l.servers, &DataIO{Server: server})
	}
	d := l.servers[i]
	read, written := moved(v)
	if group == "READ" {
		d.Reads++
		d.Read += read
	} else {
		d.Writes++
		d.Written += written
	}
}
