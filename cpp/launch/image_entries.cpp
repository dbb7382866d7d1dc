#include "launch/image_entries.h"

#include "formats/image.h"

#include <algorithm>

namespace cudamod::launch {

ImageEntries::ImageEntries(formats::Bytes image) {
    switch (formats::sniff(image)) {
    case formats::ImageKind::Ptx:
        if (auto header = formats::read_ptx_header(formats::as_text(image)); header.ok())
            header_ = std::move(*header);
        break;
    case formats::ImageKind::Fatbin:
        if (auto fatbin = formats::read_fatbin(image); fatbin.ok()) {
            auto ptx =
                std::find_if(fatbin->entries.begin(), fatbin->entries.end(),
                             [](auto& entry) { return entry.kind == formats::FatbinKind::Ptx; });
            if (ptx == fatbin->entries.end()) break;
            payload_.assign(ptx->payload.begin(), ptx->payload.end());
            packed_ = *ptx;
            packed_->payload = payload_;
            packed_->identifier = {};
        }
        break;
    default:
        break;
    }
}

const formats::PtxEntry* ImageEntries::find(std::string_view kernel) const {
    std::call_once(read_, [this] {
        if (!packed_) return;
        if (auto text = formats::extract(*packed_); text.ok())
            if (auto header = formats::read_ptx_header(formats::as_text(*text)); header.ok())
                header_ = std::move(*header);
        packed_.reset();
        payload_ = {};
    });
    return header_ ? header_->find_entry(kernel) : nullptr;
}

} // namespace cudamod::launch
